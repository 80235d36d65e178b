# Two images from one file:
#   docker build --target cpu -t envace:cpu .   the whole pipeline with the tiny policy, no GPU
#   docker build --target gpu -t envace:gpu .   the Qwen3 profiles: CUDA, vLLM rollouts, several nodes by Ray
# docs/operations.md says how to run them, and what of them was tried. Keys and data are never built in: keys come as
# environment variables at run time, data and models lie in mounted folders.

ARG CPU_BASE=python:3.11-slim-bookworm
ARG GPU_BASE=nvidia/cuda:13.0.1-devel-ubuntu24.04

# What both images hold of the project; .dockerignore lets nothing else near the build.
FROM scratch AS project
COPY pyproject.toml README.md LICENSE params.yaml dvc.yaml accepted_profile.json .dvcignore /app/
COPY .dvc/config /app/.dvc/config
COPY bin /app/bin
COPY constraints /app/constraints
COPY profiles /app/profiles
COPY envace /app/envace
COPY flows /app/flows
COPY harnesses /app/harnesses
COPY pipeline_steps /app/pipeline_steps


# The devel image, since Triton, FlashInfer and flash-attn compile kernels. Ubuntu 24.04: Python 3.12, glibc 2.39.
FROM ${GPU_BASE} AS gpu
ENV PATH=/opt/envace/bin:$PATH PYTHONUNBUFFERED=1 ENVACE_PYTHON=/opt/training/bin/python
RUN apt-get update \
 && apt-get install -y --no-install-recommends git build-essential python3.12 python3.12-dev python3.12-venv \
 && rm -rf /var/lib/apt/lists/*
# Two venvs: vllm 0.24.0 and prefect 3.9.1 want different versions of fastapi. The command and its flow run in the first,
# every stage in the second (ENVACE_PYTHON).
RUN python3.12 -m venv /opt/envace && python3.12 -m venv /opt/training
COPY constraints/gpu-pipeline.txt /opt/envace/gpu-pipeline.txt
RUN /opt/envace/bin/pip install --no-cache-dir --no-deps -r /opt/envace/gpu-pipeline.txt
# torch 2.11.0, vllm 0.24.0, verl[vllm] 0.9.1, transformers 5.9.0, ray 2.60.0, tensordict 0.10.0, TransferQueue 0.1.11
COPY constraints/gpu.txt /opt/training/gpu.txt
RUN /opt/training/bin/pip install --no-cache-dir --no-deps -r /opt/training/gpu.txt
# verl attends with flash attention; it is published as source, and compiling it takes long and much memory a job
ARG MAX_JOBS=4
RUN /opt/training/bin/pip install --no-cache-dir --no-deps --no-build-isolation flash-attn==2.8.3
RUN useradd --create-home --uid 10001 envace
COPY --from=project --chown=envace:envace /app /app
WORKDIR /app
RUN printf '[core]\n    no_scm = true\n' > .dvc/config.local \
 && mkdir -p data models reports .envace \
 && /opt/envace/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e . \
 && /opt/training/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e . \
 && chown -R envace:envace /app
USER envace
ENTRYPOINT ["envace"]
CMD ["run"]


# Last, so that a plain `docker build .` makes this one.
FROM ${CPU_BASE} AS cpu
ENV PATH=/opt/envace/bin:$PATH PYTHONUNBUFFERED=1
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
RUN python3.11 -m venv /opt/envace
COPY constraints/cpu.txt /opt/envace/cpu.txt
# an index with a CPU build of torch saves several GB; the usual one works the same
ARG TORCH_INDEX_URL=
RUN /opt/envace/bin/pip install --no-cache-dir ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} -c /opt/envace/cpu.txt torch==2.13.0 \
 && /opt/envace/bin/pip install --no-cache-dir --no-deps -r /opt/envace/cpu.txt
RUN useradd --create-home --uid 10001 envace
COPY --from=project --chown=envace:envace /app /app
WORKDIR /app
# there is no git repository in an image, and DVC wants to be told so
RUN printf '[core]\n    no_scm = true\n' > .dvc/config.local \
 && mkdir -p data models reports .envace \
 && /opt/envace/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e . \
 && chown -R envace:envace /app
USER envace
ENTRYPOINT ["envace"]
CMD ["run"]
