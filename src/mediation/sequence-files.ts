/**
 * Loads the sequences of a home, `synapse-configs/default/sequences/*.xml`, and the default sequence of the package for
 * each name without a file. A faulty file is replaced by the active sequence of its name, else by the default one: an
 * error in the wording of faults must not stop the gateway.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Diagnostic, Diagnostics, formatValue } from '../config/diagnostics.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import type { SequencePlan } from './sequence-plan.ts'

interface SequenceFile {
  readonly label: string
  readonly text: string
  readonly plan: SequencePlan
}

export interface SequenceSet {
  /** By name of the sequence. */
  readonly files: ReadonlyMap<string, SequenceFile>
  /** Names whose own file is faulty, so that another one is used. */
  readonly fallbacks: readonly string[]
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

export const NO_SEQUENCES: SequenceSet = { files: new Map(), fallbacks: [], errors: [], warnings: [] }

const SEQUENCES = join('synapse-configs', 'default', 'sequences')
/** In the home itself or, as on the reference platform, below it. */
const FOLDERS = [SEQUENCES, join('repository', 'deployment', 'server', SEQUENCES)]
const DEFAULTS = fileURLToPath(new URL(`../../conf/${SEQUENCES}`, import.meta.url))
/** Plans of the default sequences, written by `npm run sequences`: a start need not load the XML and XPath parsers. */
const PARSED = fileURLToPath(new URL('../../conf/synapse-configs/default/parsed-sequences.json', import.meta.url))
const EXTENSION = '.xml'
const FILES_MAX = 256
const FILE_BYTES_MAX = 1024 * 1024
/** Request fields that all sequences together may read: each is captured from every request. */
const REQUEST_FIELDS_MAX = 64

/** `active`: replacements for faulty files; an unchanged file is not parsed again. */
export async function loadSequences(home: string, active: SequenceSet = NO_SEQUENCES): Promise<SequenceSet> {
  const diagnostics = new Diagnostics()
  const folder = folderOf(home, diagnostics)
  const own = folder === undefined ? new Map() : await ownFiles(folder, active, diagnostics)
  const defaults = folder === DEFAULTS ? new Map() : await defaultFiles(active)
  const files = new Map<string, SequenceFile>()
  const fallbacks: string[] = []
  for (const name of [...new Set([...defaults.keys(), ...own.keys()])].sort()) {
    const ownFile = own.get(name)
    const file = ownFile ?? (ownFile === null ? active.files.get(name) : undefined) ?? defaults.get(name)
    if (ownFile === null) fallbacks.push(name)
    if (file !== undefined) files.set(name, file)
  }
  replaceIncomplete({ files, fallbacks, active, defaults }, diagnostics)
  if (parsedDefaults?.error !== undefined) diagnostics.errors.push(parsedDefaults.error)
  const { errors, warnings } = diagnostics
  return { files, fallbacks, errors, warnings }
}

/** The same sequences, for a reload that does not read the files. */
export function withoutDiagnostics({ files }: SequenceSet): SequenceSet {
  return { ...NO_SEQUENCES, files }
}

/** Names of new, changed and removed sequences. */
export function changedSequences({ files }: SequenceSet, next: SequenceSet): readonly string[] {
  const names = [...new Set([...files.keys(), ...next.files.keys()])]
  return names.filter(name => files.get(name)?.text !== next.files.get(name)?.text).sort()
}

/** Undefined: the home has no sequences of its own. */
function folderOf(home: string, diagnostics: Diagnostics): string | undefined {
  const [folder, ignored] = FOLDERS.map(it => resolve(home, it)).filter(isThere)
  if (folder !== undefined && ignored !== undefined) {
    diagnostics.warn(labelOf(ignored), '', `is ignored, because ${labelOf(folder)} exists`, '')
  }
  return folder
}

/** By name; null for a faulty file. */
async function ownFiles(
  folder: string,
  active: SequenceSet,
  diagnostics: Diagnostics,
): Promise<Map<string, SequenceFile | null>> {
  const names = namesIn(folder, diagnostics)
  if (names === undefined) return new Map([...active.files.keys()].map(name => [name, null]))
  const files = new Map<string, SequenceFile | null>()
  for (const name of names) {
    const file = await readFile(join(folder, name + EXTENSION), name, active, diagnostics)
    if (file !== undefined) files.set(name, file)
  }
  return files
}

/** Diagnostics are dropped: a test proves that the default files have none. */
async function defaultFiles(active: SequenceSet): Promise<Map<string, SequenceFile>> {
  const dropped = new Diagnostics()
  const files = new Map<string, SequenceFile>()
  for (const name of namesIn(DEFAULTS, dropped) ?? []) {
    const file = await readFile(join(DEFAULTS, name + EXTENSION), name, active, dropped)
    if (file) files.set(name, file)
  }
  return files
}

interface Selection {
  readonly files: Map<string, SequenceFile>
  readonly fallbacks: string[]
  readonly active: SequenceSet
  readonly defaults: ReadonlyMap<string, SequenceFile>
}

/** Replaces sequences that run a missing one or read too many fields, and then those that run a replaced one. */
function replaceIncomplete({ files, fallbacks, active, defaults }: Selection, diagnostics: Diagnostics): void {
  const tried = new Set<SequenceFile>()
  for (let found = firstIncomplete(files, fallbacks); found !== undefined; found = firstIncomplete(files, fallbacks)) {
    const [name, error] = found
    tried.add(files.get(name)!)
    diagnostics.errors.push(error)
    if (!fallbacks.includes(name)) fallbacks.push(name)
    const other = [active.files.get(name), defaults.get(name)].find(it => it !== undefined && !tried.has(it))
    if (other === undefined) files.delete(name)
    else files.set(name, other)
  }
}

function firstIncomplete(
  files: ReadonlyMap<string, SequenceFile>,
  fallbacks: readonly string[],
): readonly [name: string, error: Diagnostic] | undefined {
  const allFields = new Set<string>()
  for (const [name, file] of files) {
    const { calls, requestFields } = file.plan
    const missing = calls.find(key => !files.has(key))
    if (missing !== undefined) {
      const [expected, hint] = fallbacks.includes(missing)
        ? ['the file of this sequence is faulty', `correct ${missing}${EXTENSION}`]
        : ['there is no sequence of this name', `add ${missing}${EXTENSION}`]
      return [name, diagnostic(positionOf(file, missing), missing, expected!, hint!)]
    }
    for (const field of requestFields) allFields.add(field)
    if (allFields.size > REQUEST_FIELDS_MAX) {
      const expected = `the sequences read more than ${REQUEST_FIELDS_MAX} different request fields`
      return [name, diagnostic(file.label, '', expected, 'read fewer')]
    }
  }
  return undefined
}

function diagnostic(where: string, given: string, expected: string, hint: string): Diagnostic {
  return { where, key: given === '' ? '' : 'sequence key', given, expected, hint }
}

/** Error for a configuration key that names a missing sequence. */
export function missingSequence(key: string, name: string): Diagnostic {
  const expected = 'there is no sequence of this name, or it is faulty'
  const hint = `name a file of synapse-configs/default/sequences without its ${EXTENSION}`
  return { where: '', key, given: formatValue(name), expected, hint }
}

/** First line of the file that names the sequence. */
function positionOf({ label, text }: SequenceFile, name: string): string {
  const at = text.split('\n').findIndex(line => line.includes(`"${name}"`) || line.includes(`'${name}'`))
  return at < 0 ? label : `${label}:${at + 1}`
}

interface ParsedSequence {
  /** Text of the file, compared as a whole: it is short, and no hash function has to be loaded. */
  readonly text: string
  readonly plan: SequencePlan
}

/** By name. */
export type ParsedSequences = Readonly<Record<string, ParsedSequence>>

interface ParsedDefaults {
  readonly sequences: ParsedSequences
  /** Set where the file exists and cannot be used. */
  readonly error?: Diagnostic
}

let parsedDefaults: ParsedDefaults | undefined

/** Undefined where the text is not that of a default sequence. */
function parsedDefault(name: string, label: string, text: string): SequencePlan | undefined {
  parsedDefaults ??= readParsedSequences()
  const known = parsedDefaults.sequences[name]
  return known?.text === text ? { ...known.plan, label, isDefault: true } : undefined
}

/** Empty without the file, and for a damaged one, which is an error because every start then takes longer. */
export function readParsedSequences(path = PARSED): ParsedDefaults {
  try {
    const sequences: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof sequences !== 'object' || sequences === null || Array.isArray(sequences)) throw new SyntaxError()
    return { sequences: sequences as ParsedSequences }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { sequences: {} }
    // The message of the JSON parser would quote the file.
    const reason = error instanceof SyntaxError ? 'it is not a JSON object' : (code ?? message)
    const expected = `cannot be used: ${reason}`
    return {
      sequences: {},
      error: { where: labelOf(path), key: '', given: '', expected, hint: 'install the package again' },
    }
  }
}

/** Loads the parsers with the first file that is not a default one. */
async function parse(
  name: string,
  label: string,
  text: string,
  diagnostics: Diagnostics,
): Promise<SequencePlan | undefined> {
  const { parseSequence } = await import('./sequence-parser.ts')
  return parseSequence(name, label, text, diagnostics)
}

/** Undefined where the file was removed meanwhile, null where it is faulty. */
async function readFile(
  path: string,
  name: string,
  { files }: SequenceSet,
  diagnostics: Diagnostics,
): Promise<SequenceFile | null | undefined> {
  const source = readSource(path, FILE_BYTES_MAX)
  if (source === undefined) return undefined
  const { label, text, error } = source
  if (error !== undefined) {
    diagnostics.errors.push(error)
    return null
  }
  const known = files.get(name)
  if (known?.label === label && known.text === text) return known
  const plan = parsedDefault(name, label, text) ?? (await parse(name, label, text, diagnostics))
  return plan === undefined ? null : { label, text, plan }
}

/** An unreadable folder is there, too. */
function isThere(folder: string): boolean {
  try {
    readdirSync(folder)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code !== 'ENOENT' && code !== 'ENOTDIR'
  }
}

/** Sorted names of the files without extension. Undefined, with an error, where the folder cannot be read. */
function namesIn(folder: string, diagnostics: Diagnostics): readonly string[] | undefined {
  try {
    const files = readdirSync(folder).filter(name => name.endsWith(EXTENSION) && !name.startsWith('.'))
    const names = files.map(name => name.slice(0, -EXTENSION.length)).sort()
    if (names.length <= FILES_MAX) return names
    diagnostics.error(labelOf(folder), '', `holds more than ${FILES_MAX} sequences`, 'the last of them are ignored')
    return names.slice(0, FILES_MAX)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return diagnostics.error(labelOf(folder), '', `cannot be read: ${code ?? message}`, 'make it readable')
  }
}
