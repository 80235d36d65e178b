"""verl's client of a rollout server where there is one only: it asks nobody which server to take."""

from __future__ import annotations

from typing import Any

from verl.workers.rollout.llm_server import LLMServerClient


class OneServerClient(LLMServerClient):
    """Sends every request to `server`, under the caller's own request id.

    verl's balancer is a process that is asked before and told after every output; with one server that is two of three
    remote calls. The request id is what the server finds a rollout's cached prefix by.
    """

    def __init__(self, config: Any, load_balancer_handle: Any = None, *, server: Any) -> None:
        super().__init__(config, load_balancer_handle)
        self._server = server

    async def _acquire_server(self, request_id: str, **extra: Any) -> tuple[str, Any]:
        return "", self._server

    def _release_server(self, server_id: str, request_id: str | None = None) -> None:
        """Nothing was taken."""

    def _vllm_request_id(self, request_id: str) -> str:
        return request_id


def client_of(servers: Any) -> LLMServerClient:
    """The client of verl's server manager: of one CPU server, or verl's own where it has others or several."""
    from envace.training.cpu_backend.rollout_server import CpuReplica

    replicas = servers.get_replicas()
    if len(replicas) != 1 or not isinstance(replicas[0], CpuReplica):
        return servers.get_client()
    return servers.get_client(OneServerClient, server=replicas[0].servers[0])
