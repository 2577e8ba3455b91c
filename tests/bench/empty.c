/*
 * empty.c: a FastCGI program that does nothing, with libfcgi as its manual
 * has it: what lighttpd and FastCGI alone cost.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcgiapp.h>
#include <pthread.h>

#include "../../fcgi/limits.h"

enum { THREADS = 8 }; /* with which it is the fastest */

static void *serve(void *context)
{
    FCGX_Request request;
    char body[BODY_MAX];
    FCGX_InitRequest(&request, 0, 0);
    while (FCGX_Accept_r(&request) == 0) {
        FCGX_GetStr(body, sizeof body, request.in);
        FCGX_PutS("Content-Type: application/json\r\n\r\n{\"token\":1}",
                  request.out);
        FCGX_Finish_r(&request);
    }
    return context;
}

int main(void)
{
    pthread_t thread;
    FCGX_Init();
    for (int i = 1; i < THREADS; i++)
        pthread_create(&thread, NULL, serve, NULL);
    serve(NULL);
    return 0;
}
