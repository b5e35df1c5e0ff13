#!/bin/sh
# The lab's stand-in for a kit of scripts: the same settings file, container names, order and commands as the real one has, an
# engine that only pretends. start (what is done without a word), stop, restart, status, logs [worker].
set -eu
cd "$(dirname "$0")"
[ -f .env ] || { echo "no .env beside $0" >&2; exit 1; }
set -a
# shellcheck source=/dev/null
. ./.env
set +a
: "${CONTAINER_HEAD:=dsv41-exl3-head}" "${CONTAINER_WORKER:=dsv41-exl3-worker}" "${PORT:=8888}" "${MASTER_PORT:=29521}"
: "${READY_TIMEOUT:=1500}" "${VLLM_API_KEY:=}"

fail() {
    echo "kit: $*" >&2
    exit 1
}

worker() {
    ssh -n -o BatchMode=yes -o ConnectTimeout=15 "$WORKER_USER@$WORKER_IP" "$@"
}

shards() {
    find "$1" -maxdepth 1 -name '*.safetensors' | wc -l
}

preflight() {
    ip -o -4 address | grep -q " $HEAD_IP/" || fail "HEAD_IP $HEAD_IP is not an address of this machine"
    for port in "$PORT" "$MASTER_PORT"; do
        [ -z "$(ss -Hltn "sport = :$port")" ] || fail "port $port is taken"
    done
    worker true || fail "ssh $WORKER_USER@$WORKER_IP does not work"
    worker test -d "$WORKER_HOME" || fail "no folder $WORKER_HOME on the worker"
    [ "$WEIGHT_SYNC $SKIP_SYNC $AUTO_DOWNLOAD $SKIP_PULL $SKIP_SHIP $SKIP_BUILD" = "rsync 1 0 1 1 1" ] ||
        fail "this stand-in shares, downloads, pulls, ships and builds nothing"
    gid_of "/sys/class/infiniband/$HEAD_CX7_IB/ports/1/gids/$HEAD_GID" || fail "GID $HEAD_GID of $HEAD_CX7_IB is empty"
    worker cat "/sys/class/infiniband/$WORKER_CX7_IB/ports/1/gids/$WORKER_GID" | grep -q '[1-9a-f]' ||
        fail "GID $WORKER_GID of $WORKER_CX7_IB on the worker is empty"
    [ -f "$MODEL_HOST/config.json" ] && [ "$(shards "$MODEL_HOST")" -ge "$EXPECTED_SHARDS" ] ||
        fail "fewer than $EXPECTED_SHARDS shards in $MODEL_HOST"
    [ -f "$ENGRAM_DIR/config.json" ] || fail "no config.json in $ENGRAM_DIR"
    worker test -f "$WORKER_MODEL_DIR/config.json" -a -f "$WORKER_ENGRAM_DIR/config.json" ||
        fail "the worker has no copy of the files"
    docker image inspect "$IMAGE" >/dev/null && worker docker image inspect "$IMAGE" >/dev/null ||
        fail "no image $IMAGE on both"
}

gid_of() {
    [ -r "$1" ] && grep -q '[1-9a-f]' "$1"
}

# engine RANK NAME ADDRESS INTERFACE HCA GID MODEL ENGRAM: the words of docker run, quoted for a shell.
engine() {
    headless=
    [ "$1" = 0 ] || headless=--headless
    vision=
    [ "$LANGUAGE_MODEL_ONLY" = 0 ] || vision=--language-model-only
    echo "docker run -d --name $2 --gpus all --network host --ipc=host --shm-size 32g --stop-timeout 60" \
        "--oom-score-adj 1000 --cap-add SYS_PTRACE --device /dev/infiniband --cap-add IPC_LOCK" \
        "--ulimit memlock=-1 --ulimit stack=67108864" \
        "-e VLLM_HOST_IP=$3 -e NCCL_SOCKET_IFNAME=$4 -e GLOO_SOCKET_IFNAME=$4 -e NCCL_IB_HCA=$5" \
        "-e NCCL_IB_GID_INDEX=$6 -e VLLM_API_KEY=$VLLM_API_KEY -e HF_HUB_OFFLINE=1" \
        "-v $7:/model:ro -v $8:/engram-src:ro $IMAGE vllm serve /model" \
        "--served-model-name DeepSeek-v4.1-Flash-EXL3 --host 0.0.0.0 --port $PORT --tensor-parallel-size $TP" \
        "--nnodes $NNODES --node-rank $1 --master-addr $HEAD_IP --master-port $MASTER_PORT $headless" \
        "--max-model-len $MAX_MODEL_LEN --max-num-seqs $MAX_NUM_SEQS" \
        "--max-num-batched-tokens $MAX_NUM_BATCHED_TOKENS $vision"
}

start() {
    preflight
    stop
    echo "kit: the worker's container first"
    echo "$IMAGE" | ssh -o BatchMode=yes "$WORKER_USER@$WORKER_IP" 'cat > /tmp/dsv41-exl3-worker.sh'
    worker "$(engine 1 "$CONTAINER_WORKER" "$WORKER_IP" "$WORKER_CX7_IF" "$WORKER_CX7_IB" "$WORKER_GID" \
        "$WORKER_MODEL_DIR" "$WORKER_ENGRAM_DIR")" >/dev/null
    echo "kit: the head's container"
    eval "$(engine 0 "$CONTAINER_HEAD" "$HEAD_IP" "$HEAD_CX7_IF" "$HEAD_CX7_IB" "$HEAD_GID" \
        "$MODEL_HOST" "$ENGRAM_DIR")" >/dev/null
    waited=0
    until curl -fsS -m 5 "http://127.0.0.1:$PORT/health" >/dev/null 2>&1; do
        [ "$(docker inspect -f '{{.State.Running}}' "$CONTAINER_HEAD")" = true ] || {
            docker logs --tail 20 "$CONTAINER_HEAD" >&2
            fail "the head's container ended"
        }
        waited=$((waited + 1))
        [ "$waited" -lt "$READY_TIMEOUT" ] || fail "not ready within $READY_TIMEOUT s"
        sleep 1
    done
    echo "kit: ready on port $PORT"
}

stop() {
    docker rm -f "$CONTAINER_HEAD" >/dev/null 2>&1 || true
    worker docker rm -f "$CONTAINER_WORKER" >/dev/null 2>&1 || true
}

case ${1:-start} in
start) start ;;
stop) stop ;;
restart) stop && start ;;
status)
    docker ps -a --filter "name=^$CONTAINER_HEAD\$"
    worker docker ps -a --filter "name=^$CONTAINER_WORKER\$"
    ;;
logs) if [ "${2:-}" = worker ]; then worker docker logs "$CONTAINER_WORKER"; else docker logs "$CONTAINER_HEAD"; fi ;;
*) fail "start, stop, restart, status or logs, not $1" ;;
esac
