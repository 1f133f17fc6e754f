/* A library that is opened and closed all the time. */
#include "work.h"

WORKER(plugin_work)
