/**
 * Writes the types of the modules that operators write to `types/` or the folder that is named, for the package: those
 * files of `src/` whose declarations `exports` of package.json names, and what they import. `npm pack` runs it first.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const SOURCE = join(ROOT, 'src')
const TYPES = join(ROOT, 'types')
const OUT = resolve(process.argv[2] ?? TYPES)

const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, { readonly types: string }>>
}
const sources = Object.values(exports).map(({ types }) =>
  join(SOURCE, relative(TYPES, join(ROOT, types)).replace(/\.d\.ts$/, '.ts')),
)

rmSync(OUT, { recursive: true, force: true })
const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
const options = [
  ...['--ignoreConfig', '--declaration', '--emitDeclarationOnly', '--rootDir', SOURCE, '--outDir', OUT],
  ...['--target', 'esnext', '--module', 'nodenext', '--types', ''],
  // `npm run check` has checked them.
  '--noCheck',
]
execFileSync(process.execPath, [compiler, ...options, ...sources], { stdio: 'inherit' })
