/**
 * Loads the sequences of a home, `synapse-configs/default/sequences/*.xml`, its templates, and the default sequence of
 * the package for each name without a file. A faulty file is replaced by the active sequence of its name, else by the
 * default one: an error in the wording of faults must not stop the gateway.
 */
import { readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { abbreviatedList, type Diagnostic, Diagnostics, formatValue } from '../config/diagnostics.ts'
import { labelOf, readSource, type SourceFile } from '../config/source-file.ts'
import { type EndpointFiles, isEndpointTemplate, loadEndpoints, lookupIn, NO_ENDPOINT_FILES } from './endpoint-files.ts'
import { missingFile, NO_LIST, withMembers } from './endpoint-groups.ts'
import { EXTENSION, entriesOf, exists, FILES_MAX, folderOf, isSequenceFile, pathOf, stemsIn } from './home-folders.ts'
import { sequenceNameIn } from './sequence-name.ts'
import type { SequencePlan } from './sequence-plan.ts'
import { missingParameter, templateKey, templateName, unknownParameters } from './sequence-templates.ts'

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
  /** Named endpoints. */
  readonly endpoints: EndpointFiles
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

export const NO_SEQUENCES: SequenceSet = {
  files: new Map(),
  fallbacks: [],
  endpoints: NO_ENDPOINT_FILES,
  errors: [],
  warnings: [],
}

/** Flows of extension sequences, as the ends of their names spell them. */
export type ExtensionFlow = 'In' | 'Out' | 'Fault'
/** Prefixes of the names of extension sequences of every API: that of homes of the reference platform, then ours. */
export const EXTENSION_PREFIXES = ['WSO2AM--Ext', 'Sluice--Ext']
/** Whether a sequence of this name may run in a flow of APIs. */
export function isOfFlow(name: string): boolean {
  return /--(?:In|Out|Fault)$/.test(name)
}

/** Ends of the names of sequences that run on requests and responses, and so never word a fault. */
const EXTENSION_NAME = /--(?:In|Out)$/

const SEQUENCES = pathOf('sequences')
/** Each tenant of the reference platform has sequences of its own there. */
const TENANTS = join('repository', 'tenants')
/** Tenants that a warning names. */
const TENANTS_SHOWN = 5
const DEFAULTS = fileURLToPath(new URL(`../../conf/${SEQUENCES}`, import.meta.url))
/** Plans of the default sequences, written by `npm run sequences`: a start need not load the XML and XPath parsers. */
const PARSED = fileURLToPath(new URL('../../conf/synapse-configs/default/parsed-sequences.json', import.meta.url))
const FILE_BYTES_MAX = 1024 * 1024
/**
 * Request fields that the sequences of faults and of WebSocket handshakes may read together: each is captured from
 * every request. Flows of APIs read the head itself.
 */
const REQUEST_FIELDS_MAX = 64

/** `active`: replacements for faulty files; an unchanged file is not parsed again. */
export async function loadSequences(home: string, active: SequenceSet = NO_SEQUENCES): Promise<SequenceSet> {
  const diagnostics = new Diagnostics()
  const folder = folderOf('sequences', home, exists, diagnostics)
  const templates = folderOf('templates', home, exists, diagnostics)
  const folders = [folder, templates].filter(it => it !== undefined)
  warnOfTenants(home, diagnostics)
  const own = await ownFiles(folders, active, diagnostics)
  const defaults = folder === DEFAULTS ? new Map() : await defaultFiles(active)
  const files = new Map<string, SequenceFile>()
  const fallbacks: string[] = []
  for (const name of [...new Set([...defaults.keys(), ...own.keys()])].sort()) {
    const ownFile = own.get(name)
    const file = ownFile ?? (ownFile === null ? active.files.get(name) : undefined) ?? defaults.get(name)
    if (ownFile === null) fallbacks.push(name)
    if (file !== undefined) files.set(name, file)
  }
  const endpoints = await loadEndpoints(home, active.endpoints, diagnostics)
  replaceIncomplete({ files, fallbacks, endpoints, active, defaults }, diagnostics)
  for (const { plan } of files.values()) {
    diagnostics.warnings.push(...unknownParameters(plan, name => files.get(name)?.plan))
  }
  if (parsedDefaults?.error !== undefined) diagnostics.errors.push(parsedDefaults.error)
  const { errors, warnings } = diagnostics
  return { files, fallbacks, endpoints, errors, warnings }
}

/** The same sequences, for a reload that does not read the files. */
export function withoutDiagnostics({ files, endpoints }: SequenceSet): SequenceSet {
  return { ...NO_SEQUENCES, files, endpoints }
}

/** Names of new, changed and removed sequences, and of endpoints. */
export function changedSequences(active: SequenceSet, next: SequenceSet): readonly string[] {
  const sequences = changedNames(active.files, next.files)
  const endpoints = changedNames(active.endpoints, next.endpoints).map(name => `endpoint ${name}`)
  const templates = changedNames(active.endpoints.templates ?? new Map(), next.endpoints.templates ?? new Map())
  return [...sequences, ...endpoints, ...templates.map(name => `template ${name}`)]
}

type Texts = ReadonlyMap<string, { readonly text: string }>

function changedNames(active: Texts, next: Texts): readonly string[] {
  const names = [...new Set([...active.keys(), ...next.keys()])]
  return names.filter(name => active.get(name)?.text !== next.get(name)?.text).sort()
}

function warnOfTenants(home: string, diagnostics: Diagnostics): void {
  const folder = resolve(home, TENANTS)
  const tenants = entriesOf(folder).filter(id => entriesOf(join(folder, id, SEQUENCES)).some(isSequenceFile))
  if (tenants.length === 0) return
  const expected = `sequences of the tenants ${abbreviatedList(tenants, TENANTS_SHOWN)} are not read`
  diagnostics.warn(labelOf(folder), '', expected, `move them to ${SEQUENCES}: names of APIs say for which they run`)
}

/** By name; null for a faulty file. */
async function ownFiles(
  folders: readonly string[],
  active: SequenceSet,
  diagnostics: Diagnostics,
): Promise<Map<string, SequenceFile | null>> {
  const ofPackage = new Set(namesIn(DEFAULTS, new Diagnostics()))
  const sources: { readonly source: SourceFile; readonly name: string; readonly stem: string }[] = []
  for (const folder of folders) {
    const stems = namesIn(folder, diagnostics)
    if (stems === undefined) return new Map([...active.files.keys()].map(name => [name, null]))
    for (const stem of stems) {
      const source = readSource(join(folder, stem + EXTENSION), FILE_BYTES_MAX)
      const isTemplate = basename(folder) === 'templates'
      if (source === undefined || (isTemplate && isEndpointTemplate(source.text))) continue
      const found = nameOf(stem, source, active, ofPackage)
      const name = isTemplate && templateName(found) === undefined ? templateKey(stem) : found
      sources.push({ source, name, stem })
    }
  }
  const files = new Map<string, SequenceFile | null>()
  const labels = new Map<string, string>()
  // A file that is called as its sequence comes before others of that name.
  for (const { source, name } of sources.sort(
    (one, two) => Number(one.name !== one.stem) - Number(two.name !== two.stem),
  )) {
    const other = labels.get(name)
    if (other !== undefined) {
      diagnostics.error(source.label, 'sequence/name', `is the name of ${other} as well`, 'rename one', name)
      continue
    }
    labels.set(name, source.label)
    files.set(name, await parsedFile(source, name, active, diagnostics))
  }
  return files
}

/**
 * The name of the sequence in a file (D722). A file that is called as a sequence of the package has to hold that one.
 * An unreadable file keeps the name that it had.
 */
function nameOf(
  stem: string,
  { label, text }: SourceFile,
  active: SequenceSet,
  ofPackage: ReadonlySet<string>,
): string {
  if (ofPackage.has(stem)) return stem
  const written = sequenceNameIn(text, stem)
  if (written !== undefined) return written
  const before = [...active.files].find(([, file]) => file.label === label)
  return before === undefined ? stem : before[0]
}

/** Diagnostics are dropped: a test proves that the default files have none. */
async function defaultFiles(active: SequenceSet): Promise<Map<string, SequenceFile>> {
  const dropped = new Diagnostics()
  const files = new Map<string, SequenceFile>()
  for (const name of namesIn(DEFAULTS, dropped) ?? []) {
    const source = readSource(join(DEFAULTS, name + EXTENSION), FILE_BYTES_MAX)
    const file = source === undefined ? null : await parsedFile(source, name, active, dropped)
    if (file !== null) files.set(name, file)
  }
  return files
}

interface Selection {
  readonly files: Map<string, SequenceFile>
  readonly fallbacks: string[]
  readonly endpoints: EndpointFiles
  readonly active: SequenceSet
  readonly defaults: ReadonlyMap<string, SequenceFile>
}

/** Replaces sequences that run a missing one or read too many fields, and then those that run a replaced one. */
function replaceIncomplete(selection: Selection, diagnostics: Diagnostics): void {
  const { files, fallbacks, active, defaults } = selection
  const tried = new Set<SequenceFile>()
  for (let found = firstIncomplete(selection); found !== undefined; found = firstIncomplete(selection)) {
    const [name, error] = found
    tried.add(files.get(name)!)
    diagnostics.errors.push(error)
    if (!fallbacks.includes(name)) fallbacks.push(name)
    const other = [active.files.get(name), defaults.get(name)].find(it => it !== undefined && !tried.has(it))
    if (other === undefined) files.delete(name)
    else files.set(name, other)
  }
}

function firstIncomplete({
  files,
  fallbacks,
  endpoints,
}: Selection): readonly [name: string, error: Diagnostic] | undefined {
  const allFields = new Set<string>()
  const ofFlows = sequencesOfFlows(files)
  for (const [name, file] of files) {
    const { calls, requestFields } = file.plan
    const missing = calls.find(key => !files.has(key))
    if (missing !== undefined) {
      const template = templateName(missing)
      const [kind, called] = template === undefined ? ['sequence', missing] : ['template', template]
      const [expected, hint] = fallbacks.includes(missing)
        ? [`the file of this ${kind} is faulty`, `correct ${called}${EXTENSION}`]
        : [`there is no ${kind} of this name`, `add ${template === undefined ? '' : 'templates/'}${called}${EXTENSION}`]
      return [name, diagnostic(positionOf(file, called), called, expected!, hint!, kind)]
    }
    const unfilled = missingParameter(file.plan, called => files.get(called)?.plan)
    if (unfilled !== undefined) return [name, unfilled]
    if (ofFlows.has(name)) continue
    const absent = missingEndpoint(file.plan, endpoints)
    if (absent !== undefined) {
      return [name, { ...absent, where: positionOf(file, absent.given) }]
    }
    for (const field of requestFields) allFields.add(field)
    if (allFields.size > REQUEST_FIELDS_MAX) {
      const expected = `the sequences read more than ${REQUEST_FIELDS_MAX} different request fields`
      return [name, diagnostic(file.label, '', expected, 'read fewer')]
    }
  }
  return undefined
}

/** Names of the extension sequences of requests and responses, and of those that only such sequences run. */
export function sequencesOfFlows(files: SequenceSet['files']): ReadonlySet<string> {
  const ofFlows = new Set([...files.keys()].filter(name => EXTENSION_NAME.test(name)))
  if (ofFlows.size === 0) return ofFlows
  const called = (names: Iterable<string>): ReadonlySet<string> => {
    const found = new Set<string>()
    const enter = (name: string): void => {
      for (const key of files.get(name)?.plan.calls ?? []) if (found.size < found.add(key).size) enter(key)
    }
    for (const name of names) enter(name)
    return found
  }
  const byFlows = called(ofFlows)
  const others = [...files.keys()].filter(name => !ofFlows.has(name) && !byFlows.has(name))
  return new Set([...ofFlows, ...byFlows.difference(called(others))])
}

function diagnostic(where: string, given: string, expected: string, hint: string, kind = 'sequence'): Diagnostic {
  return { where, key: given === '' ? '' : `${kind} ${kind === 'template' ? 'target' : 'key'}`, given, expected, hint }
}

/** Error for a sequence with an endpoint of which there is no file, without its place; undefined for none. */
export function missingEndpoint({ endpoints = [] }: SequencePlan, files: EndpointFiles): Diagnostic | undefined {
  for (const { name, form, key, takesOne } of endpoints) {
    if (key !== undefined) continue
    const found = form === null ? (files.get(name)?.form ?? missingFile(name)) : withMembers(form, lookupIn(files))
    if ('hint' in found) return { where: '', key: 'endpoint key', ...found }
    if (takesOne === true && found.address.kind === 'recipients') {
      const given = form?.address.kind === 'instance' ? form.address.template : name
      return { where: '', key: 'endpoint key', given, ...NO_LIST }
    }
  }
  return undefined
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

/** Null where the file is faulty. */
async function parsedFile(
  { label, text, error }: SourceFile,
  name: string,
  { files }: SequenceSet,
  diagnostics: Diagnostics,
): Promise<SequenceFile | null> {
  if (error !== undefined) {
    diagnostics.errors.push(error)
    return null
  }
  const known = files.get(name)
  if (known?.label === label && known.text === text) return known
  const plan = parsedDefault(name, label, text) ?? (await parse(name, label, text, diagnostics))
  return plan === undefined ? null : { label, text, plan }
}

/** Sorted names of the files without extension. Undefined, with an error, where the folder cannot be read. */
function namesIn(folder: string, diagnostics: Diagnostics): readonly string[] | undefined {
  try {
    const names = stemsIn(folder)
    if (names.length <= FILES_MAX) return names
    diagnostics.error(labelOf(folder), '', `holds more than ${FILES_MAX} sequences`, 'the last of them are ignored')
    return names.slice(0, FILES_MAX)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return diagnostics.error(labelOf(folder), '', `cannot be read: ${code ?? message}`, 'make it readable')
  }
}
