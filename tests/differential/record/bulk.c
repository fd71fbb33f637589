/*
 * bulk: a bulk TCP transfer that looks at itself.
 *
 *   bulk receive PORT
 *       accept one connection, read and discard until it ends.
 *   bulk send HOST PORT CONGESTION_CONTROL SECONDS INFO_CSV
 *       write without pause for SECONDS, sampling TCP_INFO every 20 ms into
 *       INFO_CSV, then abort the connection (RST), as a harness that kills its
 *       sender does: what is left in the send buffer is never sent.
 *
 * Times in INFO_CSV are seconds since just before connect().
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/inet_diag.h>
#include <linux/tcp.h>

enum { chunk_bytes = 256 * 1024, sample_period_ns = 20 * 1000 * 1000 };

static char chunk[chunk_bytes];
static volatile int finished;

struct sampler {
    int socket;
    FILE *csv;
    double start;
    int is_bbr;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now_on(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void write_sample(const struct sampler *s)
{
    struct tcp_info i;
    socklen_t length = sizeof i;
    memset(&i, 0, sizeof i);
    double at = now_on(CLOCK_MONOTONIC) - s->start;
    if (getsockopt(s->socket, IPPROTO_TCP, TCP_INFO, &i, &length) != 0)
        return;
    fprintf(s->csv,
            "%.6f,%u,%u,%d,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,"
            "%llu,%llu,%llu,%llu,%llu,%u,%u,%u,%u,%llu,%llu,%u",
            at, i.tcpi_ca_state, i.tcpi_snd_cwnd,
            i.tcpi_snd_ssthresh >= 0x7fffffff ? -1 : (int) i.tcpi_snd_ssthresh,
            i.tcpi_unacked, i.tcpi_sacked, i.tcpi_lost, i.tcpi_retrans,
            i.tcpi_total_retrans, i.tcpi_rtt, i.tcpi_rttvar, i.tcpi_min_rtt,
            i.tcpi_rto, i.tcpi_delivered, i.tcpi_reordering,
            (unsigned long long) i.tcpi_delivery_rate,
            (unsigned long long) i.tcpi_pacing_rate,
            (unsigned long long) i.tcpi_bytes_sent,
            (unsigned long long) i.tcpi_bytes_acked,
            (unsigned long long) i.tcpi_bytes_retrans, i.tcpi_notsent_bytes,
            (unsigned) i.tcpi_delivery_rate_app_limited, i.tcpi_snd_wnd,
            i.tcpi_reord_seen, (unsigned long long) i.tcpi_rwnd_limited,
            (unsigned long long) i.tcpi_sndbuf_limited, i.tcpi_snd_mss);
    if (s->is_bbr) {
        union tcp_cc_info c;
        socklen_t c_length = sizeof c;
        memset(&c, 0, sizeof c);
        getsockopt(s->socket, IPPROTO_TCP, TCP_CC_INFO, &c, &c_length);
        uint64_t bandwidth = ((uint64_t) c.bbr.bbr_bw_hi << 32) | c.bbr.bbr_bw_lo;
        fprintf(s->csv, ",%llu,%u,%.4f,%.4f", (unsigned long long) bandwidth,
                c.bbr.bbr_min_rtt, c.bbr.bbr_pacing_gain / 256.0,
                c.bbr.bbr_cwnd_gain / 256.0);
    }
    fputc('\n', s->csv);
}

static void *sample(void *argument)
{
    const struct sampler *s = argument;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!finished) {
        write_sample(s);
        next.tv_nsec += sample_period_ns;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec += 1;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return NULL;
}

static int receive(const char *port)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t) atoi(port))};
    if (listener < 0)
        die("socket");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *) &address, sizeof address) != 0)
        die("bind");
    if (listen(listener, 1) != 0)
        die("listen");
    int connection = accept(listener, NULL, NULL);
    if (connection < 0)
        die("accept");
    unsigned long long total = 0;
    ssize_t n;
    while ((n = read(connection, chunk, sizeof chunk)) > 0)
        total += (unsigned long long) n;
    printf("%llu\n", total);
    return 0;
}

static int transmit(char **argv)
{
    const char *host = argv[0], *port = argv[1], *scheme = argv[2];
    double seconds = atof(argv[3]);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t) atoi(port))};
    if (s < 0)
        die("socket");
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        die("address");
    if (setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, scheme, (socklen_t) strlen(scheme)) != 0)
        die("TCP_CONGESTION");
    FILE *csv = fopen(argv[4], "w");
    if (csv == NULL)
        die(argv[4]);
    struct sampler sampler = {.socket = s, .csv = csv,
                              .is_bbr = strcmp(scheme, "bbr") == 0};
    fprintf(csv, "# start_epoch_s: %.6f\n", now_on(CLOCK_REALTIME));
    fprintf(csv, "t_s,ca_state,cwnd,ssthresh,unacked,sacked,lost,retrans,total_retrans,"
                 "srtt_us,rttvar_us,min_rtt_us,rto_us,delivered,reordering,"
                 "delivery_rate_Bps,pacing_rate_Bps,bytes_sent,bytes_acked,"
                 "bytes_retrans,notsent_bytes,app_limited,snd_wnd,reord_seen,"
                 "rwnd_limited_us,sndbuf_limited_us,snd_mss%s\n",
            sampler.is_bbr ? ",bbr_bw_Bps,bbr_min_rtt_us,bbr_pacing_gain,bbr_cwnd_gain" : "");
    sampler.start = now_on(CLOCK_MONOTONIC);
    if (connect(s, (struct sockaddr *) &address, sizeof address) != 0)
        die("connect");
    struct timeval patience = {.tv_sec = 0, .tv_usec = 100000};
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    pthread_t thread;
    if (pthread_create(&thread, NULL, sample, &sampler) != 0)
        die("pthread_create");
    while (now_on(CLOCK_MONOTONIC) - sampler.start < seconds) {
        if (write(s, chunk, sizeof chunk) < 0 && errno != EAGAIN)
            die("write");
    }
    finished = 1;
    pthread_join(thread, NULL);
    write_sample(&sampler);
    fclose(csv);
    struct linger abort_now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(s, SOL_SOCKET, SO_LINGER, &abort_now, sizeof abort_now);
    close(s);
    sleep(1); /* the shells die with this process: let the path drain first */
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "receive") == 0)
        return receive(argv[2]);
    if (argc == 7 && strcmp(argv[1], "send") == 0)
        return transmit(argv + 2);
    fprintf(stderr, "usage: bulk receive PORT | bulk send HOST PORT CC SECONDS INFO_CSV\n");
    return 2;
}
