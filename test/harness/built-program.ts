/**
 * Builds the program as the package has it (`scripts/bundle.ts`), for tests that start it: a thread that loads one
 * bundle takes two thirds of the time of one that loads the sources.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { rmSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = resolve(import.meta.dirname, '../..')
export const COMPILE_CACHE = join(ROOT, 'node_modules/.cache/test')
const PROGRAMS = join(ROOT, 'node_modules/.cache/program')
/** What the built program reads beside its bundles. */
const LINKED = ['conf', 'package.json', 'src/control/dashboard/page']
const KEPT_MS = 24 * 60 * 60 * 1000

/**
 * Returns the path of the entry. Each state of the sources has a folder of its own, because other runs of the tests may
 * use the one before. Folders that are older than a day are removed. Throws when the sources cannot be bundled.
 */
export function buildProgram(): string {
  const folder = join(PROGRAMS, sourcesDigest())
  const entry = join(folder, 'src', 'launch.js')
  if (existsSync(entry)) return entry
  mkdirSync(PROGRAMS, { recursive: true })
  removeOld()
  const made = mkdtempSync(join(PROGRAMS, 'made-'))
  execFileSync(process.execPath, [join(ROOT, 'scripts/bundle.ts'), join(made, 'lib')], { stdio: 'inherit' })
  for (const name of LINKED) {
    mkdirSync(dirname(join(made, name)), { recursive: true })
    symlinkSync(join(ROOT, name), join(made, name))
  }
  cpSync(join(ROOT, 'src/launch.js'), join(made, 'src/launch.js'))
  try {
    renameSync(made, folder)
  } catch (error) {
    // Another run has built the same.
    rmSync(made, { recursive: true, force: true })
    if (!existsSync(entry)) throw error
  }
  return entry
}

/** First file of a worker thread of the program that `npm test` has built; undefined where it has built none. */
export function builtWorkerEntry(): URL | undefined {
  const launcher = process.env.SLUICE_LAUNCHER
  if (!launcher?.startsWith(PROGRAMS)) return undefined
  return pathToFileURL(resolve(launcher, '../../lib/worker/worker-entry.js'))
}

function sourcesDigest(): string {
  const digest = createHash('sha256')
  for (const file of globSync(['src/**/*.{ts,js}', 'scripts/bundle.ts', 'package-lock.json'], { cwd: ROOT }).sort()) {
    digest.update(`${file}\0`).update(readFileSync(join(ROOT, file)))
  }
  return digest.digest('hex').slice(0, 16)
}

/** Removes old folders, and the compile cache, which keeps the code of their bundles. */
function removeOld(): void {
  const isOld = (name: string): boolean => Date.now() - statSync(join(PROGRAMS, name)).mtimeMs > KEPT_MS
  const old = readdirSync(PROGRAMS).filter(isOld)
  for (const folder of [...old.map(name => join(PROGRAMS, name)), ...(old.length > 0 ? [COMPILE_CACHE] : [])]) {
    rmSync(folder, { recursive: true, force: true })
  }
}
