# starts rank 0 (engine) on spark-1
docker run \
  --detach \
  --pull never \
  --restart no \
  --name sparkyard-T-engine-0 \
  --label sparkyard.lane=T \
  --label sparkyard.rank=0 \
  --label sparkyard.node=spark-1 \
  --label sparkyard.nodes=spark-1,spark-2 \
  --label sparkyard.service=engine \
  --label sparkyard.hash=a6e2319fa63396391e8889d3044a2d500c62698562151165a5fce5285c0f68b7 \
  --label 'sparkyard.discovered={"gid": "<discovered: gid>"}' \
  --network host \
  --gpus all \
  --ulimit memlock=-1:-1 \
  --device=/dev/infiniband \
  --env NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1 \
  --env 'NCCL_IB_GID_INDEX=<discovered: gid>' \
  --env GLOO_SOCKET_IFNAME=enp1s0f1np1 \
  --env 'THRESHOLDS=-2 -2 1' \
  --env RANK=0 \
  --env-file '<discovered: home>/.local/share/sparkyard/lanes/T/engine.env' \
  --env-file '<discovered: home>/.local/share/sparkyard/lanes/T/keys.env' \
  --mount 'type=bind,source=<discovered: home>/.local/share/sparkyard/models/example--tiny/1111111111111111111111111111111111111111,target=/model,readonly' \
  --mount 'type=bind,source=<discovered: home>/.local/share/sparkyard/lanes/T/profile,target=/profile,readonly' \
  --mount 'type=bind,source=<discovered: home>/.local/share/sparkyard/lanes/T/cache,target=/cache' \
  sparkyard/tiny:1d5174b03052 \
  serve \
  --served-model-name tiny \
  '--config={"streams":4,"peers":1}'
