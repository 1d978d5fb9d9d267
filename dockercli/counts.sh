counts() {
  o= q=
  { while read -r k v; do [ "$k" = oom_kill ] && o=$v; done </sys/fs/cgroup/memory.events ||
    while read -r k v; do [ "$k" = oom_kill ] && o=$v; done </sys/fs/cgroup/memory/memory.oom_control
    while read -r k v; do [ "$k" = max ] && q=$v; done </sys/fs/cgroup/pids.events ||
    while read -r k v; do [ "$k" = max ] && q=$v; done </sys/fs/cgroup/pids/pids.events; } 2>/dev/null
  o=${o:--} q=${q:--}
}
