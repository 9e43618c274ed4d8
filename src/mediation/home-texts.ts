/**
 * Texts of the home that mediators name by `key`: local entries, `synapse-configs/default/local-entries/KEY.xml`, and
 * files by their path inside the home. A changed file is read again, within a second.
 */
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Diagnostic, Diagnostics, formatDiagnostic } from '../config/diagnostics.ts'
import { moduleProblem } from '../config/module-file.ts'
import { readSource } from '../config/source-file.ts'
import { parseXml } from '../config/xml.ts'
import { monotonicMs } from '../runtime/monotonic-clock.ts'
import { javaIn } from './script-java.ts'
import type { SequencePlan, UsedFile } from './sequence-plan.ts'

/** `problem`: '' where the text was read, else what is wrong, without its subject. */
interface HomeText {
  readonly text: string
  readonly problem: string
}

const ENTRIES = join('synapse-configs', 'default', 'local-entries')
const FOLDERS = [ENTRIES, join('repository', 'deployment', 'server', ENTRIES)]
const BYTES_MAX = 1024 * 1024
const BOUNDS = { bytes: BYTES_MAX, elements: 100_000, depth: 500 }
/** Registries of the reference platform, which stand in front of paths. */
const REGISTRY = /^(?:conf|gov|resources):\/*/
const NAME = /^[\w][\w.-]{0,199}$/
/** Until a file is looked at again, in milliseconds. */
const FRESH_MS = 1000

interface Read {
  readonly reading: Promise<HomeText & { readonly mtimeMs: number }>
  readonly sinceMs: number
}

export class HomeTexts {
  readonly #home: string
  /** By key; keys stand in sequences, which bounds their number. */
  readonly #read = new Map<string, Read>()

  constructor(home: string) {
    this.#home = home
  }

  /** The text of a local entry, else of a file. Never rejects. */
  read(key: string): Promise<HomeText> {
    const known = this.#read.get(key)
    const sinceMs = monotonicMs()
    if (known !== undefined && sinceMs - known.sinceMs < FRESH_MS) return known.reading
    const reading = this.#again(key, known)
    this.#read.set(key, { reading, sinceMs })
    return reading
  }

  async #again(key: string, known: Read | undefined): Read['reading'] {
    const path = await this.#pathOf(key)
    if (path === undefined) return { text: '', problem: 'is neither a local entry nor a file of the home', mtimeMs: 0 }
    const { mtimeMs } = await stat(join(this.#home, path)).catch(() => ({ mtimeMs: 0 }))
    const before = await known?.reading
    // Its value is the same object, so that what was made of it is found again.
    if (before !== undefined && before.mtimeMs === mtimeMs && before.problem === '') return before
    return { ...(await textOf(resolve(this.#home, path))), mtimeMs }
  }

  /** Undefined where there is no such file inside the home. */
  async #pathOf(key: string): Promise<string | undefined> {
    const name = key.replace(REGISTRY, '')
    const entries = NAME.test(name) ? FOLDERS.flatMap(folder => [join(folder, `${name}.xml`), join(folder, name)]) : []
    for (const path of [...entries, name]) if ((await moduleProblem(this.#home, path)) === '') return path
    return undefined
  }
}

async function textOf(path: string): Promise<HomeText> {
  const source = readSource(path, BYTES_MAX)
  if (source === undefined) return { text: '', problem: 'is not there' }
  if (source.error !== undefined) return { text: '', problem: source.error.expected }
  return path.endsWith('.xml') && source.text.includes('localEntry') ? entryIn(source.text) : { ...source, problem: '' }
}

/** The content of `<localEntry>`: text, or one element as it stands there. */
async function entryIn(text: string): Promise<HomeText> {
  const diagnostics = new Diagnostics()
  const root = await parseXml(text, 'local entry', 'localEntry', diagnostics, BOUNDS)
  if (root === undefined) return { text: '', problem: diagnostics.errors.map(formatDiagnostic).join('; ') }
  if (root.has('src')) return { text: '', problem: 'has src, which is not supported: name the file by its path' }
  if (root.children.length === 0) return { text: root.text, problem: '' }
  const [, inner = ''] = /<(?:\w+:)?localEntry\b[^>]*>([\s\S]*)<\/(?:\w+:)?localEntry\s*>/.exec(text) ?? []
  return { text: inner.trim(), problem: '' }
}

/** Files that sequences use and that cannot be used: each of their messages is a fault. */
export async function usedFileProblems(home: string, plans: readonly SequencePlan[]): Promise<readonly Diagnostic[]> {
  const texts = new HomeTexts(home)
  const problems = plans.flatMap(({ label, files = [] }) =>
    files.map(async (file): Promise<readonly Diagnostic[]> => {
      const expected = await problemOf(file, home, texts)
      const hint = 'every message that needs it is a fault: correct the file or its name'
      return expected === '' ? [] : [{ where: `${label}:${file.line}`, key: 'key', given: file.key, expected, hint }]
    }),
  )
  return (await Promise.all(problems)).flat()
}

async function problemOf({ kind, key }: UsedFile, home: string, texts: HomeTexts): Promise<string> {
  if (kind === 'module') return moduleProblem(home, key)
  const { text, problem } = await texts.read(key)
  if (kind === 'text' || problem !== '') return problem
  if (kind === 'script') {
    const java = javaIn(text)
    return java === null
      ? ''
      : `uses ${java.name} in its line ${java.linesBefore + 1}: Java does not run here; ${java.remedy}`
  }
  if (kind === 'template') {
    const { templateProblem } = await import('./freemarker/template-parser.ts')
    return templateProblem(text)
  }
  const { schemaProblem } = await import('./mediators/validate.ts')
  return schemaProblem(text)
}
