# The usual tools: threads, pipes that close, signals that report, libraries that are preloaded.
seq 200000 | shuf --random-source=<(yes) > mixed
sort -n --parallel=2 -S 1M mixed | sha256sum
sort mixed | uniq | wc
split -n l/4 --filter='wc -l' mixed | paste -s -d ' ' | tr ' ' '\n' | awk '{ n += $1 } END { print n }'
split -n l/3 mixed part. && cat part.* | cmp - mixed && echo "split"
head -n 3 mixed; tail -n 3 mixed
yes | head -c 100000 | md5sum
seq 100000 | head -n 1; echo "${PIPESTATUS[*]}"
seq 1000 | tee -p copy >(wc -l > counted) > /dev/null
for i in $(seq 100); do [ -s counted ] && break; sleep 0.02; done
cat counted
dd if=/dev/zero of=zeros bs=64k count=64 status=none; stat -c %s zeros
dd if=/dev/zero of=/dev/null bs=1M count=2000 2> report &
writer=$!
for i in $(seq 200); do grep -q . report && break; kill -USR1 $writer 2>/dev/null || break; sleep 0.01; done
wait $writer; echo "dd $?"; tail -n 3 report | grep -o '^[0-9]*+0 records'
touch grows
tail -f --pid=$$ -s 0.05 grows > followed &
follower=$!
for i in 1 2 3; do echo "line $i" >> grows; sleep 0.1; done
for i in $(seq 100); do [ "$(wc -l < followed)" = 3 ] && break; sleep 0.02; done
kill $follower; wait $follower; echo "tail $?"; cat followed
nohup sh -c 'kill -HUP $$; echo "not hung up"' 2> /dev/null < /dev/null
stdbuf -oL sh -c 'echo "LD_PRELOAD has ${LD_PRELOAD##*/}"'
nice -n 5 nice
chroot / /bin/echo "another root"
factor 1234567890123456789
cp -r . ../nothing/there; echo "$?"
mkdir tree && cp mixed part.* tree && du -s --apparent-size --block-size=1k tree > /dev/null; echo "$?"
ln -s tree link && ls link && rm -rf tree link
sleep 0.1 0.05; echo "$?"
tar cf - mixed | gzip -1 | gunzip | tar tf -
comm -12 <(sort part.aa) <(sort mixed) | wc -l
od -An -tx1 -N 16 zeros; seq 5 | tac; seq 10 | numfmt --to=si; printf '%s\n' a b | join - <(printf 'a 1\nb 2\n')
kill -l TERM; test -t 0; echo "$?"; who > /dev/null; echo "$?"
