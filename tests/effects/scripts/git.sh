# A repository of its own; names and dates are fixed, so that all its hashes are.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null HOME=$PWD
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git -c init.defaultBranch=main init -q scratch && cd scratch || exit 1
git config gc.auto 0
for i in $(seq 40); do
    seq "$i" $((i * 50)) > "file$((i % 7))"
    git add . && git commit -q -m "change $i"
done
git log --oneline | tail -n 3
git checkout -q -b other HEAD~5
seq 9 > more && git add more && git commit -q -m other
git checkout -q main && git merge -q other -m merge
echo "merge $?"
git checkout -q other && git rebase -q main
echo "rebase $?"
git rev-parse main other
git gc -q --aggressive --prune=now
echo "gc $?"
git fsck --full --strict
echo "fsck $?"
git clone -q . ../clone && git -C ../clone rev-parse HEAD
git grep -c 77 | head -n 3
git diff --stat HEAD~10 | tail -n 1
git archive HEAD | sha256sum
git stash list
echo 1 >> file1 && git stash -q && git stash pop -q && git status --short
git log -p --all | head -n 2
echo "log ${PIPESTATUS[*]}"
git bisect start -q HEAD HEAD~20 > /dev/null && git bisect run sh -c 'test $(wc -l < file1) -lt 1200' | tail -n 1
