# Traps run at once or after a command, waits are broken by them, jobs stop and go on.
trap 'echo usr1' USR1
trap 'echo usr2' USR2
trap 'echo child' CHLD
for i in 1 2 3; do kill -USR1 $$; kill -USR2 $$; done
trap - CHLD

sleep 5 &
sleeper=$!
(sleep 0.2; kill -USR1 $$) &
wait $sleeper
echo "wait was broken: $?"
kill $sleeper
wait $sleeper 2>/dev/null
echo "killed: $?"
wait
echo "all: $?"

for i in 3 1 2; do (sleep 0.$((i * 2)); exit $i) & done
for i in 1 2 3; do wait -n; echo "next: $?"; done

set -m
sleep 100 &
job=$!
kill -STOP %1
for i in $(seq 100); do grep -q '^State:.T' /proc/$job/status && break; sleep 0.02; done
jobs -s | sed 's/  */ /g'
kill -CONT %1
kill -TERM %1
wait $job 2>/dev/null
echo "job: $?"
set +m

trap '' PIPE
yes | head -n 1
echo "pipe ignored: ${PIPESTATUS[*]}"
trap - PIPE
yes | head -n 1
echo "pipe: ${PIPESTATUS[*]}"

coproc cat
echo "through a coprocess" >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}"
echo "$line"
exec {COPROC[1]}>&-
wait "$COPROC_PID"
echo "coprocess: $?"

read -r -t 0.2 nothing < <(sleep 1)
echo "read in time: $(($? > 128))"
diff <(seq 5) <(seq 6)
echo "substituted: $?"

(trap 'echo leaving; exit 4' EXIT TERM; kill -TERM $BASHPID; sleep 9)
echo "subshell: $?"
sh -c 'trap "echo in dash; exit 6" HUP; kill -HUP $$; sleep 9'
echo "dash: $?"
sh -c 'sleep 9 & kill -KILL $!; wait $!; echo $?'
for signal in HUP INT QUIT ABRT KILL SEGV PIPE ALRM TERM USR1 USR2 URG WINCH CHLD; do
    sh -c "trap - $signal; kill -$signal \$\$" 2>/dev/null
    echo "$signal $?"
done
ulimit -n 50
echo "$(ulimit -n) descriptors"
(ulimit -t 1; while :; do :; done) 2>/dev/null
echo "out of time: $?"
