/**
 * Loads the named endpoints of a home, `synapse-configs/default/endpoints/*.xml`. A faulty file is replaced by the
 * active endpoint of its name, and reported.
 */
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Diagnostics } from '../config/diagnostics.ts'
import { labelOf, readSource } from '../config/source-file.ts'
import { withMembers } from './endpoint-groups.ts'
import type { EndpointForm } from './endpoint-plan.ts'

interface EndpointFile {
  readonly label: string
  readonly text: string
  /** The endpoint, with those of the files that it names. */
  readonly form: EndpointForm
  /** The endpoint as the file has it. */
  readonly parsed: EndpointForm
}

/** By name. */
export type EndpointFiles = ReadonlyMap<string, EndpointFile>

export const NO_ENDPOINT_FILES: EndpointFiles = new Map()

const ENDPOINTS = join('synapse-configs', 'default', 'endpoints')
/** In the home itself or, as on the reference platform, below it. */
const FOLDERS = [ENDPOINTS, join('repository', 'deployment', 'server', ENDPOINTS)]
const EXTENSION = '.xml'
const FILES_MAX = 256
const FILE_BYTES_MAX = 256 * 1024

/** `active`: replacements for faulty files; an unchanged file is not parsed again. */
export async function loadEndpoints(
  home: string,
  active: EndpointFiles,
  diagnostics: Diagnostics,
): Promise<EndpointFiles> {
  const [folder, ignored] = FOLDERS.map(it => resolve(home, it)).filter(it => namesIn(it) !== undefined)
  if (folder === undefined) return NO_ENDPOINT_FILES
  if (ignored !== undefined) {
    diagnostics.warn(labelOf(ignored), '', `is ignored, because ${labelOf(folder)} exists`, '')
  }
  const names = namesIn(folder)!
  if (names.length > FILES_MAX) {
    diagnostics.error(labelOf(folder), '', `holds more than ${FILES_MAX} endpoints`, 'the last of them are ignored')
  }
  const files = new Map<string, EndpointFile>()
  for (const name of names.slice(0, FILES_MAX)) {
    const file = (await readFile(join(folder, name + EXTENSION), name, active, diagnostics)) ?? active.get(name)
    if (file !== undefined) files.set(name, file)
  }
  return resolved(files, active, diagnostics)
}

/** Returns the files, whose groups have the endpoints of the files that they name. */
function resolved(files: ReadonlyMap<string, EndpointFile>, active: EndpointFiles, diagnostics: Diagnostics) {
  const named = new Map(files)
  for (const [name, file] of files) {
    const { label, text, parsed } = file
    const open = new Set([name])
    const formOf = (key: string): EndpointForm | undefined => {
      const form = open.has(key) ? undefined : files.get(key)?.parsed
      open.add(key)
      const whole = form === undefined ? undefined : withMembers(form, formOf)
      open.delete(key)
      return whole === undefined || 'hint' in whole ? undefined : whole
    }
    const form = withMembers(parsed, formOf)
    if (form === file.form) continue
    if (!('hint' in form)) named.set(name, { ...file, form })
    else {
      const lines = text.split('\n')
      const at = lines.findIndex(line => /\skey\s*=/.test(line) && line.includes(form.given))
      diagnostics.error(at < 0 ? label : `${label}:${at + 1}`, 'endpoint key', form.expected, form.hint, form.given)
      const former = active.get(name)
      if (former === undefined) named.delete(name)
      else named.set(name, former)
    }
  }
  return named
}

/** Undefined where the file is faulty. */
async function readFile(
  path: string,
  name: string,
  active: EndpointFiles,
  diagnostics: Diagnostics,
): Promise<EndpointFile | undefined> {
  const source = readSource(path, FILE_BYTES_MAX)
  if (source === undefined) return undefined
  const { label, text, error } = source
  if (error !== undefined) {
    diagnostics.errors.push(error)
    return undefined
  }
  const known = active.get(name)
  if (known?.label === label && known.text === text) return known
  const { parseEndpointFile } = await import('./sequence-parser.ts')
  const form = await parseEndpointFile(name, label, text, diagnostics)
  return form === undefined ? undefined : { label, text, form, parsed: form }
}

/** Sorted names of the files without extension; undefined where there is no such folder. */
function namesIn(folder: string): readonly string[] | undefined {
  try {
    const files = readdirSync(folder).filter(name => name.endsWith(EXTENSION) && !name.startsWith('.'))
    return files.map(name => name.slice(0, -EXTENSION.length)).sort()
  } catch {
    return undefined
  }
}
