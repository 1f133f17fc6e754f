# Signals, alarms, children and pipes, as perl's programs use them.
use strict;
use warnings;
use POSIX ":sys_wait_h";

my %seen;
$SIG{$_} = do { my $name = $_; sub { $seen{$name}++ } } for qw(USR1 USR2 WINCH URG);
kill $_ => $$ for qw(USR1 USR2 WINCH URG USR1);
print join(" ", map { "$_ $seen{$_}" } sort keys %seen), "\n";

my $late = eval { local $SIG{ALRM} = sub { die "in time\n" }; alarm 1; select(undef, undef, undef, 20); 1 };
print $late ? "late\n" : $@;

my %status;
my $reaped = 0;
$SIG{CHLD} = sub { while ((my $pid = waitpid(-1, WNOHANG)) > 0) { $status{$? >> 8}++; $reaped++ } };
for my $i (1 .. 30) {
    my $pid = fork;
    if (!$pid) { select(undef, undef, undef, 0.001 * $i); POSIX::_exit($i % 5) }
}
select(undef, undef, undef, 0.01) while $reaped < 30;
print join(" ", map { "$_:$status{$_}" } sort keys %status), "\n";
$SIG{CHLD} = 'DEFAULT';

my $sum = 0;
for my $i (1 .. 20) {
    open(my $from, "-|", "sh", "-c", "echo $i; exit " . $i % 3) or die;
    $sum += $_ while <$from>;
    close $from;
    $sum += 1000 * ($? >> 8);
}
print "$sum\n";
{ local $SIG{PIPE} = 'IGNORE'; open(my $to, "|-", "true") or die; sleep 1; print $to "x" x 100000; close $to; print "pipe $?\n" }
print system("kill -9 \$\$") & 127, "\n";
