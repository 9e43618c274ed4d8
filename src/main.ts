#!/usr/bin/env node
/** The command line: turns on the compile cache, then loads only what the command needs. */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

/** Compiled code of all threads. Beside the program and not in a folder for everybody, because what lies there is run. */
const compileCache = join(import.meta.dirname, '..', 'node_modules', '.cache', 'sluice')
enableCompileCache(compileCache)
const { run } = await import('./cli/run.ts')
// Timers and sockets of the other threads end with the process.
process.exit(await run(process.argv.slice(2), compileCache))
