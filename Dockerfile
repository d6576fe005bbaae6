# qlae with everything that training and the explorer need, on a CPU:
#
#   docker build -t qlae .
#   docker run --rm -v "$PWD/runs:/work/runs" qlae demo
#
# For a GPU, build with the CUDA wheels of torch and run with --gpus all:
#
#   docker build -t qlae --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130 .
# Written against the documentation of Docker; no image has been built with it yet.
FROM python:3.12-slim

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN useradd --create-home qlae && mkdir /work && chown qlae /work

# torch alone, so that a change of the sources does not download it again
RUN pip install --no-cache-dir torch --index-url ${TORCH_INDEX}

COPY pyproject.toml README.md LICENSE /source/
COPY tools/readme_hook.py /source/tools/
COPY src /source/src
RUN pip install --no-cache-dir '/source[train,explorer]' && rm -r /source

USER qlae
WORKDIR /work
ENTRYPOINT ["qlae"]
CMD ["--help"]
