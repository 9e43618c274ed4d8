/**
 * The files of projects: which there are, whether they have changed, and what is in them. Reading may take place in
 * another thread: a job and its result are plain data.
 */
import { type Dirent, existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Diagnostic } from '../config/diagnostics.ts'
import { labelOf } from '../config/source-file.ts'
import { GRAPHQL_FILES } from './graphql-project.ts'
import { POLICIES } from './own-policies.ts'
import { OLDER_EXPORT, type ParsedProject, PROJECT_FILES, type ProjectPaths, readProject } from './api-project.ts'
import { readDocument } from './document-api.ts'
import { listFolder, mayHave } from './project-folder.ts'
import { filesBelow, SEQUENCES } from './project-sequences.ts'

/** A project or a document that is to be read. */
export interface ReadingJob {
  /** Folder of the project, or file of the document. */
  readonly path: string
  /** Files of the project; null for a document. */
  readonly files: ProjectPaths | null
  /** Validates the document even if nothing in it has an effect. */
  readonly isThorough: boolean
}

/** A thread that reads what would take long in this one. */
export interface ReadingThread {
  /** Results in the order of the jobs. */
  read(jobs: readonly ReadingJob[]): Promise<readonly ParsedProject[]>
  /** Jobs with fewer bytes are read in this thread. */
  readonly bytesMin: number
  /** Bytes of OpenAPI documents alone: their validation takes long, and the first one compiles a schema. */
  readonly documentBytesMin: number
}

export interface FoundFiles {
  readonly files: ProjectPaths | null
  /** Changes with the files; '' if it does not prove their content. */
  readonly signature: string
  readonly bytes: number
  readonly documentBytes: number
}

export const UNREAD: ParsedProject = {
  declared: undefined,
  errors: [],
  warnings: [],
  hasExternalValues: false,
  mediation: null,
}

/** Sequences and policies are parsed by `withMediation`. */
export function readJob({ path, files, isThorough }: ReadingJob): ParsedProject {
  const parsed = files === null ? readDocument(path) : readProject(files, isThorough)
  return parsed ?? { ...UNREAD, errors: missingProject(path) }
}

/** The files of an entry of `apis/` and their signature. */
export function findFiles(path: string, isDocument: boolean): FoundFiles {
  if (isDocument) {
    const { signature, bytes } = lookAt(path)
    return { files: null, signature, bytes, documentBytes: bytes }
  }
  const folder = lookAt(path)
  const names = listFolder(path)
  const first = (candidates: readonly string[]): Existing | undefined => {
    for (const name of candidates) {
      if (!mayHave(names, name)) continue
      const file = `${path}/${name}`
      const looked = lookAt(file)
      if (looked.signature !== ABSENT)
        return { ...looked, file, signature: looked.signature && `${name} ${looked.signature}` }
    }
    return undefined
  }
  const [api, document, deployments] = [
    first(PROJECT_FILES.api),
    first(PROJECT_FILES.document),
    first(PROJECT_FILES.deployments),
  ]
  // Only a project without an OpenAPI document may be one of GraphQL.
  const graphql = document === undefined ? GRAPHQL_FILES.map(name => first([name])) : []
  const existing = [api, document, deployments, ...graphql].filter(one => one !== undefined)
  // The names in these folders are checked as well.
  const folders = ['Definitions', SEQUENCES, POLICIES].map(name =>
    mayHave(names, name) ? lookAt(`${path}/${name}`) : NONE,
  )
  const [, ofSequences, ofPolicies] = folders
  const parts = [ofSequences!, ofPolicies!].some(one => one.signature !== ABSENT) ? mediationFiles(path) : []
  const signatures = [...existing, folder, ...folders, ...parts].map(one => one.signature)
  return {
    files: { api: api?.file, document: document?.file, deployments: deployments?.file, names },
    signature: signatures.includes('') ? '' : signatures.join(' '),
    bytes: [...existing, ...parts].reduce((sum, { bytes }) => sum + bytes, 0),
    documentBytes: document?.bytes ?? 0,
  }
}

/** The files of sequences and policies; a change below a folder does not change the folder. */
function mediationFiles(project: string): readonly Looked[] {
  const paths = [SEQUENCES, POLICIES].flatMap(folder => filesBelow(`${project}/${folder}`))
  return paths.map(path => {
    const { signature, bytes } = lookAt(path)
    return { signature: signature && `${path} ${signature}`, bytes }
  })
}

interface Looked {
  /** Changes with the file; '' for a file that is too young or cannot be looked at. */
  readonly signature: string
  readonly bytes: number
}

interface Existing extends Looked {
  readonly file: string
}

/** Resolution of file times: a file changed within this time before it was read may change again unnoticed. */
const FILE_TIME_TICK_MS = 50
/** Signature of a file that does not exist. */
const ABSENT = '-'
const NONE: Looked = { signature: ABSENT, bytes: 0 }

function lookAt(path: string): Looked {
  try {
    const status = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (status === undefined) return { signature: ABSENT, bytes: 0 }
    const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = status
    const isYoung = Date.now() - Number(ctimeMs) < FILE_TIME_TICK_MS
    return { signature: isYoung ? '' : [dev, ino, size, mtimeNs, ctimeNs].join(), bytes: Number(size) }
  } catch {
    // Reading the file reports the cause.
    return { signature: '', bytes: 0 }
  }
}

export interface Entry {
  readonly name: string
  /** A file that may be an OpenAPI document; anything else is a project. */
  readonly isDocument: boolean
}

/** Content of a folder of projects. */
export interface Listing {
  /** Undefined if the folder cannot be read or is gone. */
  readonly entries: readonly Entry[] | undefined
  /** There is no such folder, as with a mount that vanishes: an error if APIs are deployed. */
  readonly isGone: boolean
  readonly errors: readonly Diagnostic[]
}

/** Sorted, so that every machine leaves out the same one of two APIs that clash. */
export function listEntries(folder: string): Listing {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith('.'))
      .map(entry => ({ name: entry.name, isDocument: isDocument(entry) }))
      .sort((one, other) => (one.name < other.name ? -1 : 1))
    return { entries, isGone: false, errors: [] }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isGone = code === 'ENOENT'
    // Without the home the reload is refused anyway.
    if (isGone && !existsSync(dirname(folder))) return { entries: undefined, isGone, errors: [] }
    const expected = isGone ? 'is gone; its APIs stay deployed' : `cannot be read: ${code ?? message}`
    const hint = isGone ? 'bring it back; an empty folder removes all APIs' : 'make it readable'
    const errors = [{ where: labelOf(folder), key: '', given: '', expected, hint }]
    return { entries: undefined, isGone, errors }
  }
}

/** A link to a folder is a project, whatever its name. */
function isDocument(entry: Dirent): boolean {
  if (!/\.(?:ya?ml|json)$/i.test(entry.name) || entry.isDirectory()) return false
  if (!entry.isSymbolicLink()) return true
  try {
    return !statSync(join(entry.parentPath, entry.name)).isDirectory()
  } catch {
    // Reading the file reports the cause.
    return true
  }
}

/** Where releases 3.x of the reference platform export the file of the API. */
const OLDER_FILES = ['Meta-information/api.yaml', 'Meta-information/api.json']

/** An error for a folder without `api.yaml` and for an archive; other files in `apis/` do not matter. */
function missingProject(path: string): readonly Diagnostic[] {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  if (!isFolder && !path.endsWith('.zip')) return []
  const expected = isFolder ? 'there is no api.yaml in it' : 'is an archive'
  const older = OLDER_FILES.some(file => existsSync(join(path, file)))
  if (older) return [{ where: labelOf(path), key: '', given: '', ...OLDER_EXPORT }]
  const hint = isFolder ? 'add one, or move the folder out of apis/' : 'unpack it into a folder'
  return [{ where: labelOf(path), key: '', given: '', expected, hint }]
}
