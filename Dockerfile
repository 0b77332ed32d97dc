# docker build -t rollcall:0.1.0 .
# docker run --rm -p 127.0.0.1:9092:9092 -p 127.0.0.1:9180:9180 -v rollcall:/var/lib/rollcall rollcall:0.1.0
# By default nothing authenticates clients: publish the ports beyond this machine only inside a network you trust,
# or set up listeners with TLS and SASL (docs/listeners.md).
#
# To pin the base image by its digest:
#   docker pull python:3.12-slim
#   docker build -t rollcall:0.1.0 --build-arg \
#     BASE=$(docker inspect --format '{{index .RepoDigests 0}}' python:3.12-slim) .
# Configuration: -e KAFKA_GROUP_MAX_SIZE=500, or a file mounted over /etc/rollcall/rollcall.toml.
#
# The interpreter: python:3.12-slim is CPython built with PGO (--enable-optimizations) and LTO (--with-lto).
# The build below prints what it found, and fails if the daemon would not run compiled modules, or if its Python
# was not configured with both options.
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/rollcall
ENV PATH=/opt/rollcall/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
# Dependencies first: they change rarely, so this layer is cached.
COPY requirements.lock .
RUN pip install --require-hashes -r requirements.lock
COPY requirements-compile.lock .
RUN python -m venv /opt/compile && /opt/compile/bin/pip install --require-hashes -r requirements-compile.lock
COPY . .
RUN ROLLCALL_COMPILE=2 /opt/compile/bin/pip wheel --no-deps --no-build-isolation -w /wheels . && \
  pip install --no-deps /wheels/*.whl && rollcall --version && rollcall --version | grep -q "(compiled, .* with PGO, with LTO)"

FROM ${BASE}
ENV PATH=/opt/rollcall/bin:$PATH PYTHONUNBUFFERED=1 ROLLCALL_CONFIG=/etc/rollcall/rollcall.toml
COPY --from=build /opt/rollcall /opt/rollcall
COPY deploy/rollcall.toml /etc/rollcall/rollcall.toml
# A number, so that Kubernetes can verify that it is not root. The owner of the folder becomes the owner of the volume.
RUN install -d -o 10001 -g 10001 /var/lib/rollcall
USER 10001:10001
VOLUME /var/lib/rollcall
EXPOSE 9092 9180
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:9180/readyz', timeout=2)"]
ENTRYPOINT ["rollcall"]
CMD ["serve"]
