/**
 * Files of TLS profiles: `<parameter name="..."><profile>...</profile></parameter>`. What both kinds of profile have in
 * common: their stores, and the elements that nothing acts on.
 */
import type { Findings } from '../config/findings.ts'
import { labelOf } from '../config/source-file.ts'
import { parseXml, type XmlElement } from '../config/xml.ts'
import { type StoreSetting, storeNames } from './store-file.ts'
import { IS_URL, locate, NO_FILE, type WatchedFiles } from './watched-files.ts'

const PROFILES_MAX = 1000
/** Folder of configuration on the reference platform, which documented paths begin with. */
const DOCUMENTED_FOLDER = 'repository/conf/'

interface ProfileFileSetting {
  /** As given: within the home folder, or absolute. */
  readonly filePath: string
  /** How the key is called, for faults. */
  readonly name: string
  /** Value of the attribute `name` of the root. */
  readonly root: string
  /** Elements that a profile may have. */
  readonly elements: readonly string[]
}

/** The profiles in order; none, with a fault, when the file cannot be read. */
export async function readProfiles(
  { filePath, name, root, elements }: ProfileFileSetting,
  home: string,
  files: WatchedFiles,
  findings: Findings,
): Promise<readonly XmlElement[]> {
  if (IS_URL.test(filePath)) {
    findings.fault('', name, NO_FILE, `set ${name}`)
    return []
  }
  const path = locate(home, '', DOCUMENTED_FOLDER, filePath.replace(/^conf\//, DOCUMENTED_FOLDER))
  const label = labelOf(path)
  const { bytes, why } = files.read(path)
  if (bytes === undefined) {
    findings.fault(label, name, `cannot be read: ${why}`, `put it there, or set ${name}`)
    return []
  }
  const parameter = await parseXml(bytes.toString('utf8'), label, 'parameter', findings)
  if (parameter === undefined) return []
  if (parameter.attribute('name') !== root) {
    findings.fault(parameter.where, name, `expected <parameter name="${root}">`, 'correct the name')
    return []
  }
  const profiles = parameter.children.filter(child => isProfile(child, findings))
  if (profiles.length > PROFILES_MAX) {
    findings.fault(profiles[PROFILES_MAX]!.where, name, `has more than ${PROFILES_MAX} profiles`, 'take fewer')
  }
  for (const profile of profiles) warnOfUnknown(profile, elements, findings)
  return profiles
}

function isProfile(child: XmlElement, findings: Findings): boolean {
  if (child.name === 'profile') return true
  findings.warn(child.where, child.name, 'is not acted on', 'only <profile> is known here')
  return false
}

function warnOfUnknown(profile: XmlElement, known: readonly string[], findings: Findings): void {
  for (const { name, where } of profile.children) {
    if (!known.includes(name)) findings.warn(where, name, 'is not acted on', `known are ${known.join(', ')}`)
  }
}

/** `<KeyStore>` or `<TrustStore>` of a profile. Undefined when there is none or, with a fault, no place of one. */
export function storeOf(profile: XmlElement, element: string, findings: Findings): StoreSetting | undefined {
  const store = profile.child(element)
  if (store === undefined) return undefined
  const names = storeNames(`${store.where} ${element}/`, ['Location', 'Type', 'Password', 'KeyPassword'])
  const textOf = (name: string): string => store.child(name)?.text ?? ''
  const fileName = textOf('Location')
  if (fileName === '') return findings.fault(store.where, `${element}/Location`, 'is missing', 'add it')
  return { fileName, type: textOf('Type'), password: textOf('Password'), keyPassword: textOf('KeyPassword'), names }
}

/** The words of an element with commas in it; none when it is not there. */
export function wordsOf(profile: XmlElement, element: string): readonly string[] {
  const text = profile.child(element)?.text ?? ''
  return text
    .split(',')
    .map(word => word.trim().toLowerCase())
    .filter(word => word !== '')
}
