/**
 * Files of TLS profiles: `<parameter name="..."><profile>...</profile></parameter>`. Reads what both kinds of profile
 * have in common: stores, lists of words, and warnings about unknown elements.
 */
import type { Diagnostics } from '../config/diagnostics.ts'
import { labelOf } from '../config/source-file.ts'
import { parseXml, type XmlElement } from '../config/xml.ts'
import { type StoreSettings, storeNames } from './key-store.ts'
import type { TlsPlanContext } from './tls-plan-context.ts'
import { IS_URL, resolveDocumented, URL_GIVEN } from './watched-files.ts'

const PROFILES_MAX = 1000
/** The configuration folder of the reference platform; paths may begin with it. */
const DOCUMENTED_FOLDER = 'repository/conf/'

interface ProfileFile {
  /** As configured: relative to the home, or absolute. */
  readonly filePath: string
  /** Path of the key that names the file, for diagnostics. */
  readonly name: string
  /** The attribute `name` of the root element. */
  readonly root: string
  /** Elements that a profile may have. */
  readonly elements: readonly string[]
}

/** The profiles in order; empty, with an error, if the file cannot be read. */
export async function readProfiles(
  { filePath, name, root, elements }: ProfileFile,
  { home, files, diagnostics }: TlsPlanContext,
): Promise<readonly XmlElement[]> {
  if (IS_URL.test(filePath)) {
    diagnostics.error('', name, URL_GIVEN, `set ${name}`)
    return []
  }
  const path = resolveDocumented(home, '', DOCUMENTED_FOLDER, filePath.replace(/^conf\//, DOCUMENTED_FOLDER))
  const label = labelOf(path)
  const { bytes, error } = files.read(path)
  if (bytes === undefined) {
    diagnostics.error(label, name, `cannot be read: ${error}`, `put the file there, or set ${name}`)
    return []
  }
  const parameter = await parseXml(bytes.toString('utf8'), label, 'parameter', diagnostics)
  if (parameter === undefined) return []
  if (parameter.attribute('name') !== root) {
    diagnostics.error(parameter.where, name, `expected <parameter name="${root}">`, 'correct the name')
    return []
  }
  const profiles = parameter.children.filter(child => isProfile(child, diagnostics))
  if (profiles.length > PROFILES_MAX) {
    diagnostics.error(profiles[PROFILES_MAX]!.where, name, `has more than ${PROFILES_MAX} profiles`, 'remove some')
  }
  for (const profile of profiles) warnOfUnknown(profile, elements, diagnostics)
  return profiles
}

function isProfile(child: XmlElement, diagnostics: Diagnostics): boolean {
  if (child.name === 'profile') return true
  diagnostics.warn(child.where, child.name, 'is ignored', 'only <profile> is known here')
  return false
}

function warnOfUnknown(profile: XmlElement, known: readonly string[], diagnostics: Diagnostics): void {
  for (const { name, where } of profile.children) {
    if (!known.includes(name)) diagnostics.warn(where, name, 'is ignored', `known elements: ${known.join(', ')}`)
  }
}

/** Reads `<KeyStore>` or `<TrustStore>`. Undefined if there is none or, with an error, if it has no location. */
export function readStoreElement(
  profile: XmlElement,
  element: 'KeyStore' | 'TrustStore',
  diagnostics: Diagnostics,
): StoreSettings | undefined {
  const store = profile.child(element)
  if (store === undefined) return undefined
  const names = storeNames(`${store.where} ${element}/`, ['Location', 'Type', 'Password', 'KeyPassword'])
  const textOf = (name: string): string => store.child(name)?.text ?? ''
  const fileName = textOf('Location')
  if (fileName === '') return diagnostics.error(store.where, `${element}/Location`, 'is missing', 'add it')
  return { fileName, type: textOf('Type'), password: textOf('Password'), keyPassword: textOf('KeyPassword'), names }
}

/** The comma-separated words of an element, in lower case; empty if there is none. */
export function wordsOf(profile: XmlElement, element: string): readonly string[] {
  const text = profile.child(element)?.text ?? ''
  return text
    .split(',')
    .map(word => word.trim().toLowerCase())
    .filter(word => word !== '')
}
