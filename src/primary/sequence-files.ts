/**
 * The sequences of a home, `synapse-configs/default/sequences/*.xml`: its own files, and beside them the default ones
 * of the package for every name that it has none of. A file that is wrong stands back for what was in force under its
 * name, or else for the default: how errors are worded is no reason to have no gateway.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Fault, show } from '../config/fault.ts'
import { Findings } from '../config/findings.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import type { SequenceProgram } from '../mediation/program.ts'

/** One file, and what was made of it. */
interface SequenceFile {
  readonly label: string
  readonly text: string
  readonly program: SequenceProgram
}

export interface SequenceSet {
  /** By what they are called by. */
  readonly files: ReadonlyMap<string, SequenceFile>
  /** Names whose own file is faulty now: another one stands in. */
  readonly kept: readonly string[]
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
}

export const NO_SEQUENCES: SequenceSet = { files: new Map(), kept: [], faults: [], warnings: [] }

const SEQUENCES = join('synapse-configs', 'default', 'sequences')
/** In the home itself or, as on the reference platform, below it. */
const FOLDERS = [SEQUENCES, join('repository', 'deployment', 'server', SEQUENCES)]
const DEFAULTS = fileURLToPath(new URL(`../../conf/${SEQUENCES}`, import.meta.url))
/** What they were read to, derived by `npm run sequences`: the parsers of XML and expressions cost a start dear. */
const COMPILED = fileURLToPath(new URL('../../conf/synapse-configs/default/programs.json', import.meta.url))
const EXTENSION = '.xml'
const FILES_MAX = 256
const FILE_BYTES_MAX = 1024 * 1024
/** Different fields of a request that all of them together may ask for: each costs every request a little. */
const REQUEST_FIELDS_MAX = 64

/** `inForce`: what files that are faulty now are replaced by, and what need not be read to a program again. */
export async function loadSequences(home: string, inForce: SequenceSet = NO_SEQUENCES): Promise<SequenceSet> {
  const findings = new Findings()
  const folder = folderOf(home, findings)
  const own = folder === undefined ? new Map() : await ownFiles(folder, inForce, findings)
  const defaults = folder === DEFAULTS ? new Map() : await defaultFiles(inForce)
  const files = new Map<string, SequenceFile>()
  const kept: string[] = []
  for (const name of [...new Set([...defaults.keys(), ...own.keys()])].sort()) {
    const known = own.get(name)
    const file = known ?? (known === null ? inForce.files.get(name) : undefined) ?? defaults.get(name)
    if (known === null) kept.push(name)
    if (file !== undefined) files.set(name, file)
  }
  replaceIncomplete({ files, kept, inForce, defaults }, findings)
  if (compiled?.fault !== undefined) findings.faults.push(compiled.fault)
  const { faults, warnings } = findings
  return { files, kept, faults, warnings }
}

/** What is in force, where no file was looked at. */
export function asTheyAre({ files }: SequenceSet): SequenceSet {
  return { ...NO_SEQUENCES, files }
}

/** Names of what is new, different or gone. */
export function changedSequences({ files }: SequenceSet, next: SequenceSet): readonly string[] {
  const names = [...new Set([...files.keys(), ...next.files.keys()])]
  return names.filter(name => files.get(name)?.text !== next.files.get(name)?.text).sort()
}

/** Undefined: the home has no sequences of its own. */
function folderOf(home: string, findings: Findings): string | undefined {
  const [folder, ignored] = FOLDERS.map(it => resolve(home, it)).filter(isThere)
  if (folder !== undefined && ignored !== undefined) {
    findings.warn(labelOf(ignored), '', `is not read, because there is ${labelOf(folder)}`, '')
  }
  return folder
}

/** By name; null for one that cannot be run. */
async function ownFiles(
  folder: string,
  inForce: SequenceSet,
  findings: Findings,
): Promise<Map<string, SequenceFile | null>> {
  const names = namesIn(folder, findings)
  if (names === undefined) return new Map([...inForce.files.keys()].map(name => [name, null]))
  const files = new Map<string, SequenceFile | null>()
  for (const name of names) {
    const file = await readFile(join(folder, name + EXTENSION), name, inForce, findings)
    if (file !== undefined) files.set(name, file)
  }
  return files
}

/** For the names that the home has none of, and for what stands back. What is wrong with them a test has found. */
async function defaultFiles(inForce: SequenceSet): Promise<Map<string, SequenceFile>> {
  const unsaid = new Findings()
  const files = new Map<string, SequenceFile>()
  for (const name of namesIn(DEFAULTS, unsaid) ?? []) {
    const file = await readFile(join(DEFAULTS, name + EXTENSION), name, inForce, unsaid)
    if (file) files.set(name, file)
  }
  return files
}

interface Choice {
  readonly files: Map<string, SequenceFile>
  readonly kept: string[]
  readonly inForce: SequenceSet
  readonly defaults: ReadonlyMap<string, SequenceFile>
}

/** What calls something that is not there, or asks for too much, stands back as well; and then who calls that. */
function replaceIncomplete({ files, kept, inForce, defaults }: Choice, findings: Findings): void {
  const tried = new Set<SequenceFile>()
  for (let found = firstIncomplete(files, kept); found !== undefined; found = firstIncomplete(files, kept)) {
    const [name, objection] = found
    tried.add(files.get(name)!)
    findings.faults.push(objection)
    if (!kept.includes(name)) kept.push(name)
    const other = [inForce.files.get(name), defaults.get(name)].find(it => it !== undefined && !tried.has(it))
    if (other === undefined) files.delete(name)
    else files.set(name, other)
  }
}

/** `kept`: names whose own file is faulty. */
function firstIncomplete(
  files: ReadonlyMap<string, SequenceFile>,
  kept: readonly string[],
): readonly [name: string, fault: Fault] | undefined {
  const asked = new Set<string>()
  for (const [name, file] of files) {
    const { calls, requestFields } = file.program
    const missing = calls.find(key => !files.has(key))
    if (missing !== undefined) {
      const [expected, remedy] = kept.includes(missing)
        ? ['the file of this sequence is faulty', `correct ${missing}${EXTENSION}`]
        : ['there is no sequence of this name', `add ${missing}${EXTENSION}`]
      return [name, fault(lineOf(file, missing), missing, expected!, remedy!)]
    }
    for (const field of requestFields) asked.add(field)
    if (asked.size > REQUEST_FIELDS_MAX) {
      const expected = `sequences read more than ${REQUEST_FIELDS_MAX} different fields of requests`
      return [name, fault(file.label, '', expected, 'read fewer')]
    }
  }
  return undefined
}

function fault(where: string, given: string, expected: string, remedy: string): Fault {
  return { where, key: given === '' ? '' : 'sequence key', given, expected, remedy }
}

/** A key names a sequence that is not there. */
export function noSuchSequence(key: string, name: string): Fault {
  const expected = 'there is no sequence of this name, or it is faulty'
  const remedy = `name a file of synapse-configs/default/sequences without its ${EXTENSION}`
  return { where: '', key, given: show(name), expected, remedy }
}

interface CompiledSequence {
  /** Compared as a whole: it is short, and nothing that hashes has to be loaded. */
  readonly text: string
  readonly program: SequenceProgram
}

/** By name. */
export type CompiledSequences = Readonly<Record<string, CompiledSequence>>

interface Compiled {
  readonly sequences: CompiledSequences
  /** Why there are none, although there is a file. */
  readonly fault?: Fault
}

let compiled: Compiled | undefined

/** Undefined: the text is not that of a default sequence. */
function compiledOf(name: string, label: string, text: string): SequenceProgram | undefined {
  compiled ??= readCompiled()
  const known = compiled.sequences[name]
  return known?.text === text ? { ...known.program, label } : undefined
}

/** None where there are none: they are only faster. So are those of a damaged file, but every start pays for that. */
export function readCompiled(path = COMPILED): Compiled {
  try {
    const sequences: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof sequences !== 'object' || sequences === null || Array.isArray(sequences)) throw new SyntaxError()
    return { sequences: sequences as CompiledSequences }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { sequences: {} }
    // What the parser says quotes the file.
    const expected = `cannot be used: ${error instanceof SyntaxError ? 'it is no JSON object' : (code ?? message)}`
    const fault = { where: labelOf(path), key: '', given: '', expected, remedy: 'install the package again' }
    return { sequences: {}, fault }
  }
}

/** Loaded with the first file that is no default one. */
async function parsed(
  name: string,
  label: string,
  text: string,
  findings: Findings,
): Promise<SequenceProgram | undefined> {
  const { readSequence } = await import('../mediation/read-sequence.ts')
  return readSequence(name, label, text, findings)
}

/** Where the key stands first. */
function lineOf({ label, text }: SequenceFile, key: string): string {
  const at = text.split('\n').findIndex(line => line.includes(`"${key}"`) || line.includes(`'${key}'`))
  return at < 0 ? label : `${label}:${at + 1}`
}

/** Undefined when it is gone meanwhile, null when it cannot be run. */
async function readFile(
  path: string,
  name: string,
  { files }: SequenceSet,
  findings: Findings,
): Promise<SequenceFile | null | undefined> {
  const source = readSource(path, FILE_BYTES_MAX)
  if (source === undefined) return undefined
  const { label, text, fault: unreadable } = source
  if (unreadable !== undefined) {
    findings.faults.push(unreadable)
    return null
  }
  const known = files.get(name)
  if (known?.label === label && known.text === text) return known
  const program = compiledOf(name, label, text) ?? (await parsed(name, label, text, findings))
  return program === undefined ? null : { label, text, program }
}

function isThere(folder: string): boolean {
  try {
    readdirSync(folder)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code !== 'ENOENT' && code !== 'ENOTDIR'
  }
}

/** Sorted. Undefined, with a fault, where nobody can tell. */
function namesIn(folder: string, findings: Findings): readonly string[] | undefined {
  try {
    const files = readdirSync(folder).filter(name => name.endsWith(EXTENSION) && !name.startsWith('.'))
    const names = files.map(name => name.slice(0, -EXTENSION.length)).sort()
    if (names.length <= FILES_MAX) return names
    findings.fault(labelOf(folder), '', `holds more than ${FILES_MAX} sequences`, 'the last of them are not read')
    return names.slice(0, FILES_MAX)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return findings.fault(labelOf(folder), '', `cannot be read: ${code ?? message}`, 'make it readable')
  }
}
