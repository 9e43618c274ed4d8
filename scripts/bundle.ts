/**
 * Bundles `src/` to JavaScript in `lib/`, for the package alone: Node refuses to strip types below `node_modules`, and
 * a hundred files start faster than 500. `npm pack` runs it first (`prepack`). `src/launch.js` is the entry of both
 * forms, and the packages of `dependencies` stay packages.
 *
 * Entries keep their place below the root, and what they share lies in `lib/chunks`, as deep as the file of a room. So
 * a path that the source computes from its own place, such as `../../conf`, is right in both forms.
 */
import { globSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { build, type Plugin } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')
const SOURCE = join(ROOT, 'src')
const FILES = globSync('**/*.{ts,js}', { cwd: SOURCE }).filter(file => !file.endsWith('.d.ts'))

/** A file that Node is told to run by path: a thread or a program. */
const RUN_BY_PATH = /new URL\('(\.[^']+)\.(ts|js)', import\.meta\.url\)/g
/** A thread whose file starts itself. */
const RUNS_ITSELF = 'new URL(import.meta.url)'

/** Paths below `src/`. Throws for a path that would be another one in the bundle. */
function entries(): readonly string[] {
  const found = new Set(['cli/run.ts'])
  for (const file of FILES) {
    const text = readFileSync(join(SOURCE, file), 'utf8')
    for (const [, path, extension] of text.matchAll(RUN_BY_PATH)) found.add(join(dirname(file), `${path}.${extension}`))
    if (text.includes(RUNS_ITSELF)) found.add(file)
    const usesOwnPlace = text.replaceAll('createRequire(import.meta.url)', '').includes('import.meta.')
    if (usesOwnPlace && file.split('/').length !== 2 && file !== 'launch.js') {
      throw new Error(`src/${file} uses its own place, which only files directly in a room can: see scripts/bundle.ts`)
    }
  }
  return [...found]
}

/** Makes paths of files to run end with `.js`. */
const builtNames: Plugin = {
  name: 'built names',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace(RUN_BY_PATH, `new URL('$1.js', import.meta.url)`),
      loader: 'ts',
    }))
  },
}

rmSync(join(ROOT, 'lib'), { recursive: true, force: true })
await build({
  entryPoints: entries().map(file => join(SOURCE, file)),
  outbase: SOURCE,
  outdir: join(ROOT, 'lib'),
  chunkNames: 'chunks/[name]-[hash]',
  ...{ bundle: true, splitting: true, packages: 'external', plugins: [builtNames] },
  ...{ format: 'esm', platform: 'node', target: 'node26', logLevel: 'warning' },
})
