/* Where the stack of the current thread ends. */
#define _GNU_SOURCE
#include "value.h"

#include <pthread.h>

/* Tell the context that Scheme runs on this thread's stack from now on. Where the system will not say how large it is,
 * half a megabyte from here is taken for granted. */
void esk_use_this_thread(Context *context) {
    char *lowest = (char *)__builtin_frame_address(0) - (512 << 10);
#if defined(__APPLE__)
    pthread_t self = pthread_self();
    lowest = (char *)pthread_get_stackaddr_np(self) - pthread_get_stacksize_np(self);
#elif defined(__linux__)
    pthread_attr_t attributes;
    void *address;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &address, &size) == 0) lowest = address;
        pthread_attr_destroy(&attributes);
    }
#endif
    esk_set_stack(context, lowest);
}
