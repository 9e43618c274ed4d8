#!/usr/bin/env node
/**
 * The program's first file. Plain JavaScript on purpose (D16): any Node can read it, so an old one gets an answer
 * instead of a syntax error; and the compile cache must be on before the first TypeScript file is loaded, because
 * loading the stripper costs every thread 10 MB and 15 ms.
 */
const OLDEST_NODE = 26

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  process.stderr.write(
    `Sluice needs Node ${OLDEST_NODE} or newer; this is ${process.version}. ` +
      'In its folder, "npm ci" brings one along: use "npm start", or "npm run sluice -- COMMAND".\n',
  )
  process.exit(1)
}

const { enableCompileCache } = await import('node:module')
const { join } = await import('node:path')
// Beside the program and not in a folder for everybody, because what lies there is run.
const compileCache = join(import.meta.dirname, '..', 'node_modules', '.cache', 'sluice')
enableCompileCache(compileCache)
await import('./near-modules.js')
const { run } = await import('./cli/run.ts')
// Timers and sockets of the other threads end with the process.
process.exit(await run(process.argv.slice(2), compileCache))
