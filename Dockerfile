# docker build -t isoroc .
# docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" isoroc apply model.json may.csv -o may.parquet
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# Any version of the compiler will do.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends gcc libc6-dev \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
ARG EXTRAS=cli,plots,report,onnx,sql
# The only file there has the version of this source tree.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
  set -- /wheels/*.whl && pip install --no-cache-dir "${1}[${EXTRAS}]"
RUN useradd --create-home --uid 10001 isoroc
USER 10001
WORKDIR /data
ENTRYPOINT ["isoroc"]
CMD ["--help"]
