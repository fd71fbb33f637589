/*
 * iptables_setuid_safe: let the setuid shells of mahimahi 0.98 call iptables.
 *
 * iptables >= 1.8.8 exits with status 111 when the real and the effective uid
 * differ, which is exactly how a setuid-root mm-* binary runs it.  This program
 * is NOT setuid itself.  Started with effective uid 0 it makes all uids and
 * gids 0 and executes iptables-legacy; started without, it fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char target[] = "/usr/sbin/iptables-legacy";
    char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};

    (void) argc;
    if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) {
        fprintf(stderr, "iptables_setuid_safe: cannot become root: %s\n",
                strerror(errno));
        return 1;
    }
    execve(target, argv, environment);
    fprintf(stderr, "iptables_setuid_safe: %s: %s\n", target, strerror(errno));
    return 1;
}
