/**
 * The names in the folder of a project. They are listed once, because looking for each file that may be there takes
 * longer than reading the project. They are also checked: a misspelt file would silently be absent.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Diagnostics } from '../config/diagnostics.ts'
import { nearestTypoOrRegrouped } from '../config/nearest.ts'
import { labelOf } from '../config/source-file.ts'

/** Files and folders that are read beside `api.yaml`. */
const READ = ['deployment_environments.yaml', 'Definitions', 'Client-certificates', 'Sequences', 'Policies']
/** Folders that have no effect, with the reason. */
const INERT: Readonly<Record<string, string>> = {
  'Endpoint-certificates': 'put the certificates of backends into the trust store of transport.passthru_https',
  'Sequence-Backend': 'move the sequence to Sequences/, and name it as data.endpointConfig.sequence',
  Interceptors: 'interceptors of another gateway are not run: use the policy callInterceptorService',
}
/** Further parts of exports, which describe the API or belong to what `api.yaml` names. */
const OTHERS = ['api.yaml', 'api_meta.yaml', 'Docs', 'Image', 'WSDL', 'SoapToRest', 'Libraries']
const KNOWN = [...READ, ...OTHERS, ...Object.keys(INERT)]
const DOCUMENT = 'swagger.yaml'
/** Definitions of APIs that are no HTTP APIs. */
const OTHER_DEFINITIONS = ['asyncapi.yaml', 'schema.graphql']
/** Names of a folder that are looked at. */
const NAMES_MAX = 1000

/** Names in the folder of a project; null where it cannot be listed, so that every file may be there. */
export type FolderNames = readonly string[] | null

/** A project and the names in its folder. */
export interface ProjectFolder {
  readonly folder: string
  readonly names: FolderNames
}

export function listFolder(folder: string): FolderNames {
  try {
    return readdirSync(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' || code === 'ENOTDIR' ? [] : null
  }
}

/** `path`: of a file or folder, from the folder of the project on. */
export function mayHave(names: FolderNames, path: string): boolean {
  return names === null || names.includes(path.split('/', 1)[0]!)
}

/** `hasOperations`: false if only a document can declare operations. */
export function checkFolder(folder: string, all: FolderNames, hasOperations: boolean): Diagnostics {
  const found = new Diagnostics()
  const names = (all ?? []).filter(name => !name.startsWith('.')).slice(0, NAMES_MAX)
  for (const [name, reason] of Object.entries(INERT)) {
    if (!names.includes(name) || namesIn(join(folder, name)).length === 0) continue
    found.warn(labelOf(join(folder, name)), '', 'has no effect', reason)
  }
  for (const name of names) {
    if (KNOWN.includes(asYaml(name))) continue
    const guess = nearestTypoOrRegrouped(asYaml(name), KNOWN)
    if (READ.includes(guess) && !names.some(each => asYaml(each) === guess)) refuse(found, join(folder, name), guess)
  }
  if (!hasOperations && names.includes('Definitions')) checkDefinitions(join(folder, 'Definitions'), found)
  return found
}

/** Without operations every path is allowed: a document under another name must not go unnoticed. */
function checkDefinitions(folder: string, found: Diagnostics): void {
  const names = namesIn(folder)
  if (names.some(name => [DOCUMENT, ...OTHER_DEFINITIONS].includes(asYaml(name)))) return
  const document = names.find(name => asYaml(name).endsWith('.yaml'))
  if (document !== undefined) refuse(found, join(folder, document), DOCUMENT)
}

function refuse(found: Diagnostics, path: string, name: string): void {
  found.error(labelOf(path), '', 'is not read', `rename it to ${name}`)
}

/** The three extensions of a file are one. */
function asYaml(name: string): string {
  return name.replace(/\.(?:yml|json)$/, '.yaml')
}

/** Empty for a folder that does not exist or cannot be read: reading its files reports the cause. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter(name => !name.startsWith('.'))
      .slice(0, NAMES_MAX)
  } catch {
    return []
  }
}
