/**
 * Bundles `src/` to JavaScript in `lib/` or the folder that is named, for the package and for tests that start the
 * program: Node refuses to strip types below `node_modules`, and each file that a thread loads costs it 0.2 ms and
 * 40 KB. `npm pack` runs it first (`prepack`). `src/launch.js` is the entry of both forms.
 *
 * Each entry has a bundle of its own: a thread loads what it needs at once in one file, with the packages of INLINED.
 * Other packages of `dependencies` stay packages. What loads on first use lies in `lib/chunks`, as deep as the file of
 * a room, and entries keep their place below the root. So a path that the source computes from its own place, such as
 * `../../conf`, is right in both forms.
 */
import { globSync, readFileSync, rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')
const SOURCE = join(ROOT, 'src')
const OUT = resolve(process.argv[2] ?? join(ROOT, 'lib'))
/** Packages that a start loads: many small ES modules, or CommonJS, of which each file costs a look at five paths. */
const INLINED = ['@hono/node-server', 'hono', 'jose', 'js-yaml', 'kysely', 'lru-cache', 'pino', 'smol-toml']
const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>
}
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
    for (const [, path = '', extension] of text.matchAll(RUN_BY_PATH)) {
      // From `lib/chunks` a path without its room would lead to `lib/chunks`.
      if (!path.startsWith('../') && file !== 'launch.js') {
        throw new Error(`src/${file}: ${path} must name its room (../ROOM/NAME): see scripts/bundle.ts`)
      }
      found.add(join(dirname(file), `${path}.${extension}`))
    }
    if (text.includes(RUNS_ITSELF)) found.add(file)
    const usesOwnPlace = text.replaceAll('createRequire(import.meta.url)', '').includes('import.meta.')
    if (usesOwnPlace && file.split('/').length !== 2 && file !== 'launch.js') {
      throw new Error(`src/${file} uses its own place, which only files directly in a room can: see scripts/bundle.ts`)
    }
  }
  return [...found]
}

/** A CommonJS module that takes a module of Node: an ES module has no `require`. */
const NODE_REQUIRE = /\brequire\(['"]([a-z:_/]+)['"]\)/g

/** Names imported from a module of Node. */
const NODE_IMPORT = /^import \{([^}]*)\} from '(node:[^']+)';?$/gm

/**
 * Takes names from the module itself. An import reads each property of the module first, and some load further ones:
 * `fs.promises`, `util.parseArgs`, `crypto.webcrypto`, in each thread.
 */
function takenFromModule(_: string, names: string, module: string): string {
  const values = names.split(',').map(name => name.trim())
  const taken = values.filter(name => name !== '' && !name.startsWith('type ')).map(name => name.replace(' as ', ': '))
  return taken.length === 0 ? '' : `const { ${taken.join(', ')} } = process.getBuiltinModule('${module}')`
}

/** Makes paths of files to run end with `.js`, and replaces imports of modules of Node. */
const builtForm: Plugin = {
  name: 'built form',
  setup({ onLoad }) {
    onLoad({ filter: /\/node_modules\/.*\.c?js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace(NODE_REQUIRE, (call: string, module: string) =>
        isBuiltin(module) ? `process.getBuiltinModule('${module}')` : call,
      ),
      loader: 'js',
    }))
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8')
        .replace(RUN_BY_PATH, `new URL('$1.js', import.meta.url)`)
        .replace(NODE_IMPORT, takenFromModule),
      loader: 'ts',
    }))
  },
}

rmSync(OUT, { recursive: true, force: true })
const external = Object.keys(dependencies).filter(name => !INLINED.includes(name))
for (const file of entries()) {
  await build({
    entryPoints: [join(SOURCE, file)],
    outbase: SOURCE,
    outdir: OUT,
    chunkNames: 'chunks/[name]-[hash]',
    ...{ bundle: true, splitting: true, external, plugins: [builtForm] },
    ...{ format: 'esm', platform: 'node', target: 'node26', logLevel: 'warning' },
    // Each thread keeps the text of its bundle. Names and short lines stay, for the stacks in logs.
    ...{ minifyWhitespace: true, minifySyntax: true, lineLimit: 160 },
  })
}
