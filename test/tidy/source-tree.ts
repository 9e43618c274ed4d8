/** All source files of the project with their imports and exports. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { type Scanned, scan } from './scan.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const FOLDERS = ['src', 'test', 'bench', 'scripts']

interface Import {
  /** Path from the root for a file of the project, otherwise the name of a module. */
  readonly from: string
  readonly isLocal: boolean
  /** Imports only types, which vanish at run time. */
  readonly isTypeOnly: boolean
  /** Loaded when the call runs: `import('x')`. */
  readonly isCall: boolean
  /** Imported names; `*` for a namespace. */
  readonly names: readonly string[]
}

export interface SourceFile extends Scanned {
  /** Path from the root, with slashes. */
  readonly path: string
  readonly text: string
  readonly imports: readonly Import[]
  readonly exports: readonly string[]
  /** True for a path that this file starts as a thread or process: `new URL('x.ts', import.meta.url)`. */
  readonly starts: (path: string) => boolean
}

type SourceTree = ReadonlyMap<string, SourceFile>

export function readTree(): SourceTree {
  const files = FOLDERS.flatMap(folder => filesBelow(join(ROOT, folder)))
  return new Map(files.map(file => [file.path, file]))
}

/** '' if the file does not exist. */
export function readRootFile(path: string): string {
  const file = join(ROOT, path)
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

function filesBelow(folder: string): SourceFile[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.[jt]s$/.test(name) && !name.includes('node_modules'))
    .map(name => readSource(join(folder, name)))
}

function readSource(file: string): SourceFile {
  const path = pathFromRoot(file)
  const text = readFileSync(file, 'utf8')
  const scanned = scan(text)
  return {
    path,
    text,
    ...scanned,
    imports: importsOf(file, scanned),
    exports: exportsOf(scanned.code),
    starts: startsOf(file, scanned.uncommented),
  }
}

const ENTRY = /new URL\(['`]([^'`]+\.[jt]s)['`], import\.meta\.url\)/g

/** An expression in a template literal matches any single name. */
function startsOf(file: string, uncommented: string): (path: string) => boolean {
  const patterns = [...uncommented.matchAll(ENTRY)].map(match => {
    const path = pathFromRoot(resolve(dirname(file), match[1]!))
    return new RegExp(
      `^${path
        .split(/\$\{[^}]*\}/)
        .map(RegExp.escape)
        .join('[^/]*')}$`,
    )
  })
  return path => patterns.some(pattern => pattern.test(path))
}

function pathFromRoot(file: string): string {
  return relative(ROOT, file).replaceAll('\\', '/')
}

const STATEMENT = /\b(?:import|export)\s+(type\s+)?(?:([\w$*{},\s]+?)\s+from\s+)?'([^']+)'/g
const CALL = /\b(?:import|require)\('([^']+)'\)/g

function importsOf(file: string, { code, uncommented }: Scanned): Import[] {
  // Not an import in a string, which is a program for another process.
  const isCode = (match: RegExpExecArray) => code.startsWith(match[0].slice(0, 6), match.index)
  const statements = [...uncommented.matchAll(STATEMENT)].filter(isCode)
  const calls = [...uncommented.matchAll(CALL)].filter(isCode)
  return [
    ...statements.map(([, type, clause = '', from]) => {
      const names = namesOf(clause)
      const isTypeOnly = type !== undefined || (names.length > 0 && names.every(name => name.startsWith('type ')))
      return { ...target(file, from!), isTypeOnly, isCall: false, names: names.map(name => name.replace('type ', '')) }
    }),
    ...calls.map(([, from]) => ({ ...target(file, from!), isTypeOnly: false, isCall: true, names: ['*'] })),
  ]
}

function target(file: string, from: string): { from: string; isLocal: boolean } {
  const isLocal = from.startsWith('.')
  return { from: isLocal ? pathFromRoot(resolve(dirname(file), from)) : from, isLocal }
}

/** The imported names of a clause, without local aliases. */
function namesOf(clause: string): string[] {
  if (clause.startsWith('*')) return ['*']
  const braces = /\{([^}]*)\}/.exec(clause)
  const inBraces = (braces?.[1] ?? '').split(',').map(name => name.trim().replace(/\s+as\s+\w+$/, ''))
  return [...inBraces, ...clause.replace(/\{[^}]*\}/, '').split(',')]
    .map(name => name.trim())
    .filter(name => name !== '')
}

const MODIFIERS = '(?:(?:declare|abstract|async)\\s+)*'
const KEYWORDS = '(?:const|let|var|function\\*?|class|interface|type|enum)'
const DECLARATION = new RegExp(`^export\\s+${MODIFIERS}${KEYWORDS}\\s+([\\w$]+)`, 'gm')

function exportsOf(code: string): string[] {
  const declared = [...code.matchAll(DECLARATION)].map(match => match[1]!)
  const listed = [...code.matchAll(/^export\s+(?:type\s+)?\{([^}]*)\}/gm)].flatMap(match =>
    match[1]!.split(',').map(name =>
      name
        .trim()
        .replace(/^type\s+/, '')
        .replace(/^.*\s+as\s+/, ''),
    ),
  )
  return [...declared, ...listed].filter(name => name !== '')
}
