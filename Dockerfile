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
# Versions of setuptools and Cython; pip since 25.3 takes them from the second variable.
ENV PIP_CONSTRAINT=/src/requirements/dev.txt PIP_BUILD_CONSTRAINT=/src/requirements/dev.txt
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
# What the extras cli, plots, report, onnx and sql need, with hashes; `make lock` updates it.
COPY requirements/image.txt /requirements.txt
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
  pip install --no-cache-dir --require-hashes -r /requirements.txt \
  && pip install --no-cache-dir --no-deps /wheels/*.whl
RUN useradd --create-home --uid 10001 isoroc
USER 10001
WORKDIR /data
ENTRYPOINT ["isoroc"]
CMD ["--help"]
