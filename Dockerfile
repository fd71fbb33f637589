# The command `ccgym` with reports and figures:
#   docker build -t ccgym .
#   docker run --rm -v "$PWD/results:/results" ccgym evaluate --trace 77.72mbps
# For real packets add --privileged. EXTRAS=all installs PyTorch, to train. `make docker-check` runs these steps without Docker.
FROM python:3.13-slim-trixie AS build
RUN apt-get update && apt-get install -y --no-install-recommends cargo gcc libc6-dev
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /dist /src

FROM python:3.13-slim-trixie
ARG EXTRAS=report
COPY --from=build /dist /dist
RUN pip install --no-cache-dir "$(echo /dist/*.whl)[$EXTRAS]" && rm -r /dist
WORKDIR /results
ENTRYPOINT ["ccgym"]
CMD ["--help"]
