# Short programs, one after the other and side by side.
sh -c 'for i in $(seq 300); do /bin/true || echo "$i"; done; echo all'
sum=0
for i in $(seq 40); do
    sum=$((sum + $(echo "$i" | cat | tr -d '\n' | cat)))
done
echo "$sum"
seq 40 | xargs -P 4 -n 1 sh -c 'exit 0' && echo "side by side"
seq 10 | xargs -P 4 -n 1 sh -c 'exit 1'
echo "$?"
find . -name '*.none' -exec false {} +
echo "$?"
for i in $(seq 20); do (exit "$i") & done
wait
echo "$?"
setsid -w sh -c 'exit 12'
echo "$?"
( (sleep 0.1; echo orphan > late) & )
for i in $(seq 200); do [ -s late ] && break; sleep 0.02; done
cat late
env -i /bin/sh -c 'echo "${PATH+path} ${LD_PRELOAD+preload}"'
env -i /usr/bin/env | grep -vE '^(PWD|SHLVL|_)='
flock lock -c 'echo locked'
flock -n lock sh -c 'flock -n lock true; echo $?'
