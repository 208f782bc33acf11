# Makes benches/GROWTH.md and benches/growth.svg of benches/growth.tsv: growth.pl TSV MD SVG. Called by growth.sh.
use strict;
use warnings;
use utf8;
use open qw(:std :encoding(UTF-8));

my ($tsv, $md, $svg) = @ARGV;
my @order = (
    'migrate', 'check', 'index', 'index --rebuild', 'commit, first', 'commit, nothing changed', 'backup run, first',
    'backup run, nothing changed', 'restore --all', 'drill', 'relay sync, first', 'relay sync, nothing changed', 'archive',
    'unarchive', 'label', 'export', 'rm', 'restore, out of the trash', 'rotate', 'ls', 'ls --long', 'search, found nowhere',
    'search, found often', 'completion of an id', 'nightly, nothing changed',
);
my $most = 11;
# MiB; packs may have more, since their decoder has a window of 135.
my %most_mib = map { $_ => 300 } grep { /archive|backup|restore --all|drill|export|nightly/ } @order;

open my $in, '<', $tsv or die "$tsv: $!\n";
my @columns = split /\t/, <$in> =~ s/\n//r;
my (%row, %seen, %known);
while (<$in>) {
    chomp;
    my %of;
    @of{@columns} = split /\t/;
    $row{$of{job}}{$of{bytes}}{$of{sessions}} = \%of;
    $seen{$of{bytes}}{$of{sessions}} = 1;
}
@known{@order} = ();
push @order, grep { !exists $known{$_} } sort keys %row;
@order = grep { $row{$_} } @order;
my @n = sort { $a <=> $b } keys %{ $seen{1} };
my ($large) = keys %{ $seen{10} // {} };

sub time_of { my $ms = shift; $ms < 1000 ? sprintf('%.0f ms', $ms) : sprintf('%.2f s', $ms / 1000) }
sub count { my $n = shift; 1 while $n =~ s/^(\d+)(\d{3})/$1,$2/; $n }

open my $out, '>', $md or die "$md: $!\n";
print $out <<"END";
# Growth

Made by `benches/growth.sh`, from `benches/growth.tsv`: run that instead of editing this.
`docs/performance.md` says what it shows.

Medians of three runs, and the largest resident set of any. × is what ten times the sessions cost; the aim is ≤ $most ×.

![The time of each job, beside a straight line](growth.svg)

END
my (@short, @large, @table);
for my $job (@order) {
    my $of = $row{$job};
    my @cells = ("`$job`" =~ s/`([^,`]+), (.*)`/`$1`, $2/r);
    my ($last, $peak) = (undef, '');
    for my $n (@n) {
        my $one = $of->{1}{$n};
        my $ms = $one ? $one->{ms} : undef;
        my $times = defined $ms && defined $last ? $ms / $last : undef;
        push @cells, defined $ms ? time_of($ms) : '—';
        push @cells, defined $times ? sprintf($times > $most ? '**%.1f**' : '%.1f', $times) : '—' if $n != $n[0];
        push @short, sprintf('`%s`: %.1f × from %s to %s sessions', $job, $times, count($n / 10), count($n))
            if defined $times && $times > $most;
        $last = $ms;
        my $mib = $one ? $one->{mib} : 0;
        my $may = $most_mib{$job} // 200;
        push @large, sprintf('`%s`: %.0f MiB at %s sessions, the aim is ≤ %d', $job, $mib, count($n), $may) if $mib > $may;
    }
    if ($large) {
        my ($one, $ten) = map { $of->{$_}{$large} } 1, 10;
        push @cells, $ten ? time_of($ten->{ms}) : '—', $one && $ten ? sprintf('%.1f', $ten->{ms} / $one->{ms}) : '—';
    }
    push @cells, map { my $one = $of->{1}{$_}; $one ? $one->{mib} : '—' } @n;
    push @cells, $of->{10}{$large} ? $of->{10}{$large}{mib} : '—' if $large;
    push @table, '| ' . join(' | ', @cells) . " |\n";
}
print $out @short ? "**Above the aim:**\n\n" . join('', map { "- $_\n" } @short) . "\n" : "Every job reaches it.\n\n";
print $out "**More memory than a job may have:**\n\n", (map { "- $_\n" } @large), "\n" if @large;
my @head = ('job');
for my $n (@n) { push @head, count($n) . ' sessions'; push @head, '×' if $n != $n[0] }
push @head, count($large) . ', 10 × the bytes', '×' if $large;
push @head, map { 'MiB at ' . count($_) } @n;
push @head, '10 × the bytes' if $large;
print $out '| ' . join(' | ', @head) . " |\n| --- |" . ' ---: |' x $#head . "\n", @table;
my ($one) = map { $row{$_}{1}{ $n[0] } // () } @order;
my %commits = map { $_->{commit} => 1 } map { values %$_ } map { values %$_ } values %row;
print $out "\nTo repeat it: `benches/growth.sh`, or `benches/growth.sh JOB…`. Measured on tmpfs (rotate: on ext4), $one->{date}, ",
    'commit ' . join(', ', sort keys %commits) . ".\n";
close $out;

# Time against sessions, both as powers of ten: what grows as the sessions do is a line as steep as the dashed one.
my ($w, $h, $per, $gap) = (200, 150, 4, 34);
my $rows = int((@order + $per - 1) / $per);
open my $pic, '>', $svg or die "$svg: $!\n";
printf $pic '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' . "\n"
    . '<rect width="100%%" height="100%%" fill="white"/>' . "\n", $per * $w + 20, $rows * ($h + $gap) + 10;
sub lg { log(shift) / log(10) }
my ($left, $right) = (lg($n[0]), lg($n[-1]));
for my $i (0 .. $#order) {
    my $job = $order[$i];
    my @points = map { my $one = $row{$job}{1}{$_}; $one ? [lg($_), lg($one->{ms})] : () } @n;
    next if @points < 2;
    my ($x0, $y0) = (10 + ($i % $per) * $w, 24 + int($i / $per) * ($h + $gap));
    my $span = $right - $left;
    my $low = $points[0][1] - 0.2;
    my $x = sub { $x0 + 8 + ($_[0] - $left) / $span * ($w - 70) };
    my $y = sub { $y0 + $h - 16 - ($_[0] - $low) / ($span + 0.4) * ($h - 26) };
    printf $pic '<text x="%.0f" y="%.0f" font-weight="bold">%s</text>' . "\n", $x0 + 4, $y0 - 6, $job;
    printf $pic '<rect x="%.0f" y="%.0f" width="%d" height="%d" fill="none" stroke="#bbb"/>' . "\n", $x0 + 2, $y0, $w - 14, $h - 10;
    printf $pic '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#999" stroke-dasharray="4 3"/>' . "\n",
        $x->($points[0][0]), $y->($points[0][1]), $x->($right), $y->($points[0][1] + $right - $points[0][0]);
    printf $pic '<polyline fill="none" stroke="#0a58a8" stroke-width="2" points="%s"/>' . "\n",
        join ' ', map { sprintf '%.1f,%.1f', $x->($_->[0]), $y->($_->[1]) } @points;
    for (@points) {
        my ($px, $py) = ($x->($_->[0]), $y->($_->[1]));
        printf $pic '<circle cx="%.1f" cy="%.1f" r="3" fill="#0a58a8"/><text x="%.1f" y="%.1f">%s</text>' . "\n", $px, $py, $px + 5,
            $py + 12, time_of(10**$_->[1]);
    }
}
print $pic "</svg>\n";
