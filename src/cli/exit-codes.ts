/** What a command ends with, but for 0: it has done what it was asked for. */

export const EXIT_FAILED = 1
/** The command line makes no sense. */
export const EXIT_USAGE = 2
/** EX_CONFIG of sysexits.h: the configuration is faulty. */
export const EXIT_CONFIGURATION = 78
