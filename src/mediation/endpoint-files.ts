/**
 * Loads the named endpoints of a home, `synapse-configs/default/endpoints/*.xml`, and templates of endpoints. A faulty
 * file is replaced by the active one of its name, and reported.
 */
import { join } from 'node:path'
import type { Diagnostics } from '../config/diagnostics.ts'
import { labelOf, readSource, type SourceFile } from '../config/source-file.ts'
import { type EndpointLookup, withMembers } from './endpoint-groups.ts'
import type { EndpointForm } from './endpoint-plan.ts'
import type { Expand } from './endpoint-templates.ts'
import { EXTENSION, FILES_MAX, folderOf, placesOf, stemsIn } from './home-folders.ts'
import { sequenceNameIn } from './sequence-name.ts'
import { templateName } from './sequence-templates.ts'

interface EndpointFile {
  readonly label: string
  readonly text: string
  /** The endpoint, with those of the files that it names. */
  readonly form: EndpointForm
  /** The endpoint as the file has it. */
  readonly parsed: EndpointForm
}

interface TemplateFile {
  readonly label: string
  readonly text: string
  readonly expand: Expand
}

/** By name. */
export interface EndpointFiles extends ReadonlyMap<string, EndpointFile> {
  /** Templates of endpoints by name; left out: none. */
  readonly templates?: ReadonlyMap<string, TemplateFile>
}

export const NO_ENDPOINT_FILES: EndpointFiles = new Map()

const FILE_BYTES_MAX = 256 * 1024

/** Finds the endpoints and templates that files name. */
export function lookupIn(files: EndpointFiles): EndpointLookup {
  return {
    formOf: name => files.get(name)?.form,
    instanceOf: ({ template, given }) => files.templates?.get(template)?.expand(given),
  }
}

/** Tells whether a file of templates has one of endpoints, not of sequences. */
export function isEndpointTemplate(text: string): boolean {
  const plain = text.replace(/<!--[\s\S]*?-->/g, '')
  const [endpoint, sequence] = [/<(?:\w+:)?endpoint\b/, /<(?:\w+:)?sequence\b/].map(tag => plain.search(tag))
  return endpoint! >= 0 && (sequence! < 0 || endpoint! < sequence!)
}

/** `active`: replacements for faulty files; an unchanged file is not parsed again. */
export async function loadEndpoints(
  home: string,
  active: EndpointFiles,
  diagnostics: Diagnostics,
): Promise<EndpointFiles> {
  const templates = await loadTemplates(home, active.templates ?? new Map(), diagnostics)
  const folder = folderOf('endpoints', home, isReadable, diagnostics)
  if (folder === undefined) return templates.size === 0 ? NO_ENDPOINT_FILES : Object.assign(new Map(), { templates })
  const names = stemsIn(folder)
  if (names.length > FILES_MAX) {
    diagnostics.error(labelOf(folder), '', `holds more than ${FILES_MAX} endpoints`, 'the last of them are ignored')
  }
  const files = new Map<string, EndpointFile>()
  for (const name of names.slice(0, FILES_MAX)) {
    const file = (await readFile(join(folder, name + EXTENSION), name, active, diagnostics)) ?? active.get(name)
    if (file !== undefined) files.set(name, file)
  }
  if (templates.size === 0) return resolved(files, active, diagnostics)
  return Object.assign(resolved(Object.assign(files, { templates }), active, diagnostics), { templates })
}

/** Templates of endpoints by name. The loader of sequences reports folders, and files that cannot be read. */
async function loadTemplates(
  home: string,
  active: ReadonlyMap<string, TemplateFile>,
  diagnostics: Diagnostics,
): Promise<ReadonlyMap<string, TemplateFile>> {
  const templates = new Map<string, TemplateFile>()
  const folder = placesOf('templates', home).find(isReadable)
  for (const stem of folder === undefined ? [] : stemsIn(folder).slice(0, FILES_MAX)) {
    const source = readSource(join(folder!, stem + EXTENSION), FILE_BYTES_MAX)
    if (source === undefined || source.error !== undefined || !isEndpointTemplate(source.text)) continue
    const { label, text } = source
    const name = templateName(sequenceNameIn(text, stem) ?? '') ?? stem
    const other = templates.get(name)
    if (other !== undefined) {
      diagnostics.error(label, 'template/name', `is the name of ${other.label} as well`, 'rename one', name)
      continue
    }
    const known = active.get(name)
    const file = known?.label === label && known.text === text ? known : await readTemplate(name, source, diagnostics)
    const used = file ?? known
    if (used !== undefined) templates.set(name, used)
  }
  return templates
}

/** Undefined where the file is faulty. */
async function readTemplate(
  name: string,
  { label, text }: SourceFile,
  diagnostics: Diagnostics,
): Promise<TemplateFile | undefined> {
  const { parseEndpointTemplate } = await import('./endpoint-templates.ts')
  const expand = await parseEndpointTemplate(name, label, text, diagnostics)
  return expand === undefined ? undefined : { label, text, expand }
}

/** Returns the files, whose groups have the endpoints of the files that they name. */
function resolved(files: EndpointFiles, active: EndpointFiles, diagnostics: Diagnostics) {
  const { instanceOf } = lookupIn(files)
  const named = new Map(files)
  for (const [name, file] of files) {
    const { label, text, parsed } = file
    const open = new Set([name])
    const formOf = (key: string): EndpointForm | undefined => {
      const form = open.has(key) ? undefined : files.get(key)?.parsed
      open.add(key)
      const whole = form === undefined ? undefined : withMembers(form, { formOf, instanceOf })
      open.delete(key)
      return whole === undefined || 'hint' in whole ? undefined : whole
    }
    const form = withMembers(parsed, { formOf, instanceOf })
    if (form === file.form) continue
    if (!('hint' in form)) named.set(name, { ...file, form })
    else {
      const lines = text.split('\n')
      const at = lines.findIndex(line => /\s(?:key|template)\s*=/.test(line) && line.includes(form.given))
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

function isReadable(folder: string): boolean {
  try {
    stemsIn(folder)
    return true
  } catch {
    return false
  }
}
