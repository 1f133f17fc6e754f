# A time limit is a timer and sigsuspend: a wake-up that is lost is a command that hangs or is killed.
failed=0
for i in $(seq 200); do
    timeout 4 true || failed=$((failed + 1))
done
echo "$failed of 200 failed"
for i in $(seq 20); do
    timeout 0.05 sleep 20 || echo -n "$? "
done
timeout --preserve-status -s INT 0.1 sleep 20
echo "$?"
timeout -k 0.1 0.1 sh -c 'trap "" TERM; sleep 20 & wait; wait'
echo "$?"
timeout --foreground 4 sh -c 'exit 9'
echo "$?"
timeout 4 sh -c 'kill -SEGV $$'
echo "$?"
