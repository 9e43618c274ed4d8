/**
 * The sequences of a project: the files of `Sequences/`, and which of them run in the flows of the API. `in-sequence`,
 * `out-sequence` and `fault-sequence` hold those of one flow; names such as `NAME:vVERSION--In` say it as well.
 */
import { type Dirent, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Diagnostics } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { SEQUENCE_NAMESPACE } from '../mediation/functions.ts'
import { sequenceNameIn } from '../mediation/sequence-name.ts'
import { templateName } from '../mediation/sequence-templates.ts'
import { type Flow, type FlowNames, FLOWS, type HomeSequence, NO_FLOW_NAMES } from './api-definition.ts'
import { escapeXml } from './policy-template.ts'
import { mayHave, type ProjectFolder } from './project-folder.ts'
import type { Path, YamlFile } from './yaml-file.ts'

/** A sequence as text. */
export interface SequenceSource {
  readonly name: string
  readonly label: string
  readonly text: string
}

interface ProjectSequences {
  readonly sources: readonly SequenceSource[]
  /** Names of the sequences that run in each flow. */
  readonly extensions: FlowNames
  readonly ofHome: readonly HomeSequence[]
}

export const SEQUENCES = 'Sequences'
const FOLDERS: Readonly<Record<Flow, string>> = {
  request: 'in-sequence',
  response: 'out-sequence',
  fault: 'fault-sequence',
}
const ENDS: Readonly<Record<Flow, string>> = { request: '--In', response: '--Out', fault: '--Fault' }
/** Members of `api.yaml` that name the sequence of a flow. */
const MEMBERS: Readonly<Record<Flow, string>> = {
  request: 'inSequence',
  response: 'outSequence',
  fault: 'faultSequence',
}
/** `type` of `mediationPolicies`, in lower case. */
const TYPES: Readonly<Record<Flow, string>> = { request: 'in', response: 'out', fault: 'fault' }
/** The policies that do what shared sequences of the reference platform do, of which exports have no file. */
const POLICIES_BY_SEQUENCE: ReadonlyMap<string, string> = new Map([
  ...['log_in_message', 'log_out_message'].map(name => [name, 'addLogMessage'] as const),
  ...['json_to_xml_in_message', 'json_to_xml_out_message'].map(name => [name, 'jsonToXML'] as const),
  ...['xml_to_json_in_message', 'xml_to_json_out_message'].map(name => [name, 'xmlToJson'] as const),
  ['debug_in_flow', 'debugRequestFlow'],
  ['debug_out_flow', 'debugResponseFlow'],
  ['debug_json_fault', 'debugJsonFault'],
  ['json_fault', 'jsonFault'],
  ['disable_chunking', 'disableChunking'],
  ['preserve_accept_header', 'preserveAcceptHeader'],
  ['apply_accept_header', 'applyAcceptHeader'],
  ['json_validator', 'jsonValidator'],
  ['xml_validator', 'xmlValidator'],
  ['regex_policy', 'regexPolicy'],
])
const EXTENSION = '.xml'
const FILES_MAX = 256
const FILE_BYTES_MAX = 1024 * 1024
const DEPTH_MAX = 3

/** Start tag of the sequence of a name. `attributes`: further ones, each behind a space. */
export function sequenceStart(name: string, attributes = ''): string {
  return `<sequence xmlns="${SEQUENCE_NAMESPACE}" name="${escapeXml(name)}"${attributes}>`
}

/** Text of the sequence of a name. `elements`: its mediators. */
export function sequenceText(name: string, elements: string): string {
  return `${sequenceStart(name)}${elements}</sequence>`
}

/** A file of `Sequences/`. */
interface SequenceFile extends SequenceSource {
  /** Name of the file without extension. */
  readonly stem: string
  /** Flow of its folder or of its name; undefined: others run it. */
  readonly flow: Flow | undefined
}

/** `api`: `NAME:vVERSION` of the project. */
export function readSequences(
  file: YamlFile,
  { folder, names }: ProjectFolder,
  api: string,
  found: Diagnostics,
): ProjectSequences {
  const paths = mayHave(names, SEQUENCES) ? filesBelow(join(folder, SEQUENCES)) : []
  const files = paths.flatMap(path => readFile(path, api, found) ?? [])
  const named = namedSequences(file)
  if (files.length === 0 && named.length === 0) return { sources: [], extensions: NO_FLOW_NAMES, ofHome: [] }
  reportDuplicates(files, found)
  const ofHome: HomeSequence[] = []
  const running = (flow: Flow): readonly string[] => {
    const given = named.filter(one => one.flow === flow)
    if (given.length > 0) return given.map(one => ownName(one, files) ?? nameOfHome(file, one, files, ofHome))
    const [only, ...others] = files.filter(one => one.flow === flow)
    if (others.length > 0) {
      const hint = `name the one that runs as data.${MEMBERS[flow]}, or move the others out of the folder`
      found.error(only!.label, '', `is one of ${others.length + 1} sequences of the ${flow} flow`, hint)
    }
    return only === undefined ? [] : [only.name]
  }
  const extensions = { request: running('request'), response: running('response'), fault: running('fault') }
  return { sources: files.map(({ name, label, text }) => ({ name, label, text })), extensions, ofHome }
}

// ---- members of api.yaml --------------------------------------------------------------------------------------------

interface NamedSequence {
  readonly flow: Flow
  readonly name: string
  readonly at: Path
}

/** The sequences that `api.yaml` names, in both forms of exports. */
function namedSequences(file: YamlFile): readonly NamedSequence[] {
  const list = ['data', 'mediationPolicies']
  const named: NamedSequence[] = FLOWS.flatMap(flow => {
    const at: Path = ['data', MEMBERS[flow]]
    const name = file.optional(at)
    return name === '' ? [] : [{ flow, name, at }]
  })
  for (let item = 0; item < (file.lengthOf(list) ?? 0); item++) {
    const at: Path = [...list, item]
    const type = file
      .text([...at, 'type'])
      ?.trim()
      .toLowerCase()
    const name = file.text([...at, 'name'])?.trim()
    if (type === undefined || name === undefined) continue
    const flow = FLOWS.find(each => TYPES[each] === type)
    if (flow === undefined) file.error([...at, 'type'], type, 'expected in, out or fault', 'correct it')
    else named.push({ flow, name, at: [...at, 'name'] })
  }
  return named
}

/** Undefined if no file of the project holds the sequence. */
function ownName({ name, flow }: NamedSequence, files: readonly SequenceFile[]): string | undefined {
  const wanted = withoutExtension(name)
  const fitting = files.filter(one => one.stem === wanted || one.name === wanted)
  return (fitting.find(one => one.flow === flow) ?? fitting[0])?.name
}

/** Exports name shared sequences of the platform, of which they have no file (D723). */
function nameOfHome(
  file: YamlFile,
  { name, flow, at }: NamedSequence,
  files: readonly SequenceFile[],
  ofHome: HomeSequence[],
): string {
  const wanted = withoutExtension(name)
  const guess = nearest(
    wanted,
    files.map(({ stem }) => stem),
  )
  const add = `add ${SEQUENCES}/${FOLDERS[flow]}/${wanted}${EXTENSION} or a sequence of the home`
  const policy = POLICIES_BY_SEQUENCE.get(wanted.toLowerCase())
  const same =
    policy === undefined ? add : `name the policy ${policy} in data.apiPolicies.${flow} in its place, or ${add}`
  const hint = guess === '' ? same : `did you mean ${guess}?`
  const missing = file.diagnostic(at, name, 'there is no such sequence in the project or the home', hint)
  ofHome.push({ name: wanted, missing })
  return wanted
}

function withoutExtension(name: string): string {
  return name.endsWith(EXTENSION) ? name.slice(0, -EXTENSION.length) : name
}

// ---- files ----------------------------------------------------------------------------------------------------------

/** Paths of the files below a folder, sorted; empty if there is no such folder. */
export function filesBelow(folder: string, depth = DEPTH_MAX): readonly string[] {
  const paths: string[] = []
  for (const entry of entriesOf(folder)) {
    if (paths.length >= FILES_MAX) break
    const path = join(folder, entry.name)
    if (!entry.isDirectory()) paths.push(path)
    else if (depth > 1) paths.push(...filesBelow(path, depth - 1))
  }
  return paths.slice(0, FILES_MAX)
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !name.startsWith('.'))
    return entries.sort((one, other) => (one.name < other.name ? -1 : 1))
  } catch {
    // No such folder, or one whose files cannot be read either.
    return []
  }
}

function readFile(path: string, api: string, found: Diagnostics): SequenceFile | undefined {
  const label = labelOf(path)
  if (!path.endsWith(EXTENSION)) {
    found.warn(label, '', 'is not read', `sequences are ${EXTENSION} files`)
    return undefined
  }
  const source = readSource(path, FILE_BYTES_MAX)
  if (source === undefined) return undefined
  if (source.error !== undefined) {
    found.errors.push(source.error)
    return undefined
  }
  const { text } = source
  const stem = basename(path, EXTENSION)
  const name = sequenceNameIn(text, stem) ?? stem
  const parts = path.split('/')
  const ofFolder = FLOWS.find(flow => parts.includes(FOLDERS[flow], parts.lastIndexOf(SEQUENCES)))
  // A template runs where a sequence calls it.
  const isTemplate = templateName(name) !== undefined
  return { stem, name, label, text, flow: isTemplate ? undefined : (ofFolder ?? ofName(stem, api, label, found)) }
}

function ofName(stem: string, api: string, label: string, found: Diagnostics): Flow | undefined {
  const flow = FLOWS.find(each => stem.endsWith(ENDS[each]))
  if (flow === undefined) return undefined
  const owner = stem.slice(0, -ENDS[flow].length)
  if (owner === api || owner.endsWith(`--${api}`)) return flow
  return found.error(label, '', `is the sequence of ${owner}, and not of ${api}`, 'rename it, or remove it')
}

function reportDuplicates(files: readonly SequenceFile[], found: Diagnostics): void {
  const first = new Map<string, string>()
  for (const { name, label } of files) {
    const other = first.get(name)
    if (other === undefined) first.set(name, label)
    else found.error(label, 'sequence/name', `is the name of ${other} as well`, 'rename one', name)
  }
}
