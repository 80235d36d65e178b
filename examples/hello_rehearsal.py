"""World rehearsal in one minute: one task, four rollouts, both roles, rewards, and the advantages of each role.

    python examples/hello_rehearsal.py

Needs no GPU, no endpoint and no network. The four rollouts are scripted, so that each shows one thing; everything
around the script is the real thing: the loop, the token layout, the parser, the checks by code, the judge and the
baselines.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from envace.config import Params, load_params
from envace.types import Criterion, Evidence, Rollout, Rubric, Step, Task, ToolCall, ToolSpec, Turn

ROOT = Path(__file__).resolve().parents[1]
CANCEL = ToolCall(tool_name="cancel_order", arguments='{"order": "A17"}')
REFUND = ToolCall(tool_name="refund", arguments='{"to": "Ana", "amount": 40}')
DONE = "Order A17 is cancelled and 40 is refunded to Ana."

OPENING = (
    "EnvACE trains a tool-using agent without any environment, by world rehearsal: one policy plays two roles. As ACT "
    "it calls tools and replies, as REHEARSE it imagines what the tools would answer. No tool is ever run. Both roles "
    "are trained together by role-wise GRPO. Below are four attempts (a group of K = 4 rollouts) at one task. The "
    "policy's texts are scripted, to be instructive; the loop around them is real."
)


def scripts() -> list[list[str]]:
    """What the policy writes in each rollout, output by output, in either role."""
    from envace.chat.layout import render_calls

    cancel, refund = render_calls([CANCEL]), render_calls([REFUND])
    wrong = render_calls([ToolCall(tool_name="refund", arguments='{"to": "Ana", "amount": "40"}')])
    cancelled, refunded = '{"order": "A17", "cancelled": true}', '{"refunded": 40, "to": "Ana"}'
    return [
        [f"<think>First the order, then the money.</think>{cancel}", cancelled, refund, refunded, DONE],
        [cancel, '{"error": "order A17 was not found"}', "I am sorry, I cannot find order A17."],
        [cancel, cancelled, wrong, refund, refunded, "Order A17 is cancelled."],
        [f"<think>I could call {cancel} but that takes long.</think>{DONE}"],
    ]


LESSONS = [
    "All goes well: two calls, two true-to-life imagined answers, a reply with both facts.",
    "The REHEARSE role is too pessimistic: it imagines an error, ACT gives up, and the shared reward is low.",
    'ACT writes the amount as text. Code refuses the call ("CODE" answers it), ACT recovers, but forgets the 40.',
    "ACT only thinks of a call, which is no call, and claims success. A gating criterion is not met: the rollout ends "
    "there, and had the task more turns, they would count 0.",
]


def make_task() -> Task:
    """Two tools, one user message, and a checklist whose every item code can decide."""
    tools = [
        _tool("cancel_order", "Cancels an order.", order="string"),
        _tool("refund", "Pays money back to a customer.", to="string", amount="integer"),
    ]
    reference = [
        Step(step_index=i, reasoning="", reply="", tool_calls=[call], tool_results=[])
        for i, call in enumerate((CANCEL, REFUND))
    ]
    reference.append(Step(step_index=2, reasoning="", reply=DONE, tool_calls=[], tool_results=[]))
    user = "Please cancel my order A17 and refund the 40. Ana"
    criteria = [
        _called("t0.c0", 0, CANCEL, weight=0.3, is_gating=True),
        _called("t0.c1", 1, REFUND, weight=0.4),
        _said("t0.c2", "A17", weight=0.15),
        _said("t0.c3", "40", weight=0.15),
    ]
    return Task(
        task_id="cancel-and-refund",
        content_sha256="",
        split="train",
        system_prompt=None,
        tools=tools,
        turns=[Turn(turn_index=0, user_message=user, reference_steps=reference)],
        rubrics=[Rubric(variant_index=0, criteria=criteria)],
        outcome=None,
        world=None,
        flags=[],
        provenance="examples/hello_rehearsal.py",
    )


def _tool(name: str, description: str, **kinds: str) -> ToolSpec:
    schema = {"type": "object", "properties": {k: {"type": t} for k, t in kinds.items()}, "required": list(kinds)}
    return ToolSpec(name=name, description=description, parameters_schema=json.dumps(schema), schema_sha256="")


def _called(name: str, step: int, call: ToolCall, *, weight: float, is_gating: bool = False) -> Criterion:
    quoted = json.dumps({"name": call.tool_name, "arguments": call.arguments})
    return Criterion(
        criterion_id=name,
        turn_index=0,
        target="tool_call",
        question=f"Did the assistant call {call.tool_name} with {call.arguments}?",
        pass_condition=f"There is a tool call with name={call.tool_name} and arguments equal to {call.arguments}.",
        failure_examples=[],
        evidence=[Evidence(turn=0, step=step, source="tool_call", snippet=quoted)],
        prerequisite_ids=[],
        weight=weight,
        source_weight=weight,
        is_gating=is_gating,
    )


def _said(name: str, fact: str, *, weight: float) -> Criterion:
    return Criterion(
        criterion_id=name,
        turn_index=0,
        target="reply",
        question=f'Does the final reply say "{fact}"?',
        pass_condition=f'The final reply contains "{fact}" as whole words.',
        failure_examples=[],
        evidence=[Evidence(turn=0, step=2, source="reply", snippet=DONE)],
        prerequisite_ids=[],
        weight=weight,
        source_weight=weight,
        is_gating=False,
    )


async def rehearse(task: Task, params: Params) -> list[Rollout]:
    """The four rollouts, side by side, each with its script in place of a policy."""
    from envace.chat.layout import ChatLayout
    from envace.data.sample import build_world, generate_demonstrations
    from envace.engines.scripted import ScriptedEngine
    from envace.rewards.rule_judge import RuleJudge
    from envace.rollout.loop import RolloutSettings, unfold
    from envace.training.base_model.tokenizer import build_tokenizer

    layout = ChatLayout(build_tokenizer(generate_demonstrations(build_world(0), 60, 0), 600, 2048))
    switches = {"validation": "code", "grounding": "none", "parallel_calls": "sequential", "role_prompts": "header"}
    room = {"max_prompt_tokens": 2000, "max_act_tokens": 500, "max_rehearse_tokens": 200}
    settings = RolloutSettings(
        rollout=params.rollout.model_copy(update=switches | room),
        reward=params.reward.model_copy(update={"kind": "checklist"}),
        seed=0,
        judge=RuleJudge(),
    )
    engines = [ScriptedEngine(layout, texts) for texts in scripts()]
    rollouts = (unfold(task, k, engine=e, layout=layout, settings=settings) for k, e in enumerate(engines))
    return list(await asyncio.gather(*rollouts))


def main() -> None:
    """Print everything."""
    from envace.algo.recorded import group_figures
    from envace.quiet import be_quiet
    from envace.report.terminal import number, print_group, print_meanings, print_rollout, terminal
    from envace.rollout.records import rollout_row

    be_quiet()
    task, console = make_task(), terminal()
    rows = [rollout_row(r) for r in asyncio.run(rehearse(task, load_params(ROOT / "params.yaml")))]
    for row in rows:
        row["turns"] = json.loads(row["turns"])
    figures = group_figures(rows)
    questions = {c.criterion_id: f"{c.question} (weight {c.weight})" for c in task.rubrics[0].criteria}

    console.print(OPENING)
    console.print("\nTools:")
    for tool in task.tools:
        console.print(f"  {tool.name}  {tool.description}  {tool.parameters_schema}")
    console.print(f"\nTask: {task.turns[0].user_message}\n")
    for row, lesson, known in zip(rows, LESSONS, figures, strict=True):
        print_rollout(console, row, figures=known, questions=questions)
        console.print(f"-> {lesson}\n")

    console.print("Role-wise GRPO: baselines and advantages (each role is compared only with itself)")
    print_group(console, rows, figures)
    act, rehearsed = ([known[role] for known in figures] for role in ("act", "rehearse"))
    mean = sum(row["reward"] for row in rows) / len(rows)
    acts, rehearsals = (sum(f.outputs for f in of_role) for of_role in (act, rehearsed))
    meanings = {
        "reward": f"What the judge gave the whole rollout; both roles share it. The mean of the four is {mean:.3f}.",
        "baseline": f"act {number(act[0].baseline)}: the mean reward over all {acts} act outputs; rehearse "
        f"{number(rehearsed[0].baseline)}: over all {rehearsals} rehearse outputs. A rollout with more outputs of a "
        "role weighs more. The last rollout never rehearsed: its reward lowers what acting is compared with, and says "
        "nothing about rehearsing.",
        "advantage": "Reward minus baseline, on every token of every output of that role in the rollout: above 0 the "
        "policy is trained towards what it wrote, below 0 away from it. Over all outputs of a role they sum to 0.",
    }
    print_meanings(console, meanings)
    console.print(
        "\nWhere it lives: the loop envace/rollout/loop.py; the baselines envace/algo/advantage.py; every switch "
        "(sections rollout, reward, advantage) params.yaml, explained in docs/method.md. Rollouts of a real run: "
        "envace run, then envace rollout show."
    )


if __name__ == "__main__":
    main()
