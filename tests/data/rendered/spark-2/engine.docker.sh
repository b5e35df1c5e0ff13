# starts rank 1 (engine) on spark-2
docker run \
  --detach \
  --pull never \
  --restart no \
  --name sparkyard-T-engine-1 \
  --label sparkyard.lane=T \
  --label sparkyard.rank=1 \
  --label sparkyard.node=spark-2 \
  --label sparkyard.nodes=spark-1,spark-2 \
  --label sparkyard.service=engine \
  --label sparkyard.hash=5766f6a0fca9c805c6cc2a31fac29bc450188fa5fb359c4dfa2e1383b68e5942 \
  --label 'sparkyard.discovered={"gid": "<discovered: gid>"}' \
  --network host \
  --gpus all \
  --ulimit memlock=-1:-1 \
  --device=/dev/infiniband \
  --env NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0 \
  --env 'NCCL_IB_GID_INDEX=<discovered: gid>' \
  --env GLOO_SOCKET_IFNAME=enp1s0f0np0 \
  --env 'THRESHOLDS=-2 -2 1' \
  --env MASTER=10.0.0.1:29500 \
  --env RANK=1 \
  --env-file '<discovered: home>/.local/share/sparkyard/lanes/T/engine.env' \
  --env-file '<discovered: home>/.local/share/sparkyard/lanes/T/keys.env' \
  --mount 'type=bind,source=<discovered: home>/.local/share/sparkyard/models/example--tiny/1111111111111111111111111111111111111111,target=/model,readonly' \
  --mount 'type=bind,source=<discovered: home>/.local/share/sparkyard/lanes/T/profile,target=/profile,readonly' \
  --mount 'type=bind,source=<discovered: home>/.local/share/sparkyard/lanes/T/cache,target=/cache' \
  sparkyard/tiny:1d5174b03052 \
  serve \
  --served-model-name tiny \
  '--config={"streams":4,"peers":1}' \
  --headless
