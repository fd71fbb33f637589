/*
 * udp_source HOST PORT SCHEDULE: send UDP datagrams at given times.
 *
 * Each line of SCHEDULE is "microseconds ip_bytes": the time since the start
 * (0.3 s after the program begins) and the length of the IP packet, 28 to 1500.
 * Prints "packets max_lateness_us mean_lateness_us" at the end.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { headers = 28, largest = 1500 };

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static long long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void sleep_until(long long us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int main(int argc, char **argv)
{
    static char payload[largest];
    long long at, lateness_sum = 0, lateness_max = 0, packets = 0;
    int size;

    if (argc != 4) {
        fprintf(stderr, "usage: udp_source HOST PORT SCHEDULE\n");
        return 2;
    }
    FILE *schedule = fopen(argv[3], "r");
    if (schedule == NULL)
        die(argv[3]);
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t) atoi(argv[2]))};
    if (s < 0 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
        die("socket or address");
    if (connect(s, (struct sockaddr *) &to, sizeof to) != 0)
        die("connect");
    long long start = now_us() + 300000;
    while (fscanf(schedule, "%lld %d", &at, &size) == 2) {
        if (now_us() < start + at)
            sleep_until(start + at);
        long long late = now_us() - start - at;
        lateness_sum += late;
        if (late > lateness_max)
            lateness_max = late;
        if (send(s, payload, (size_t) (size - headers), 0) < 0)
            die("send");
        packets++;
    }
    printf("%lld %lld %lld\n", packets, lateness_max, packets ? lateness_sum / packets : 0);
    return 0;
}
