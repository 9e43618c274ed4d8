#!/usr/bin/env node
/**
 * Entry of the program. Plain JavaScript (D16): an old Node can read it and gets a message instead of a syntax error,
 * and the compile cache is on before the first TypeScript file loads, because loading the type stripper costs every
 * thread 10 MB and 15 ms.
 */
const OLDEST_NODE = 26

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  const msg =
    `Sluice needs Node ${OLDEST_NODE} or newer, and this is ${process.version} ` +
    '(in the source folder, "npm run sluice -- COMMAND" uses the right one).'
  // As `cli/service-log.ts` writes it.
  const isPlain = process.stderr.isTTY || process.argv[2] !== 'start'
  process.stderr.write(`${isPlain ? msg : JSON.stringify({ level: 'fatal', time: new Date().toISOString(), msg })}\n`)
  process.exit(1)
}

const { accessSync, constants, existsSync } = await import('node:fs')
const { enableCompileCache } = await import('node:module')
const { join } = await import('node:path')

/**
 * The folder of the compile cache: of the program if that can be written, else of the user. Never a shared temporary
 * folder, because cached code is executed.
 */
function cacheFolder() {
  const { NODE_COMPILE_CACHE, XDG_CACHE_HOME, HOME } = process.env
  if (NODE_COMPILE_CACHE) return NODE_COMPILE_CACHE
  const packages = join(import.meta.dirname, '..', 'node_modules')
  try {
    accessSync(packages, constants.W_OK)
  } catch {
    if (XDG_CACHE_HOME || HOME) return join(XDG_CACHE_HOME || join(HOME, '.cache'), 'sluice')
    // No code is cached then.
  }
  return join(packages, '.cache', 'sluice')
}

const compileCache = cacheFolder()
enableCompileCache(compileCache)
// A package has the built program in `lib/` and nothing of `src/` but this file.
const isSource = existsSync(new URL('./cli/run.ts', import.meta.url))
if (isSource) await import('./runtime/module-resolver.js')
const built = '../lib/cli/run.js'
const { run } = isSource ? await import('./cli/run.ts') : await import(built)
// Timers and sockets of the other threads end with the process.
process.exit(await run(process.argv.slice(2), compileCache))
