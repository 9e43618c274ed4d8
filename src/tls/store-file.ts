/** One key or trust store as it is configured: where it lies, what opens it, and how its keys are called in faults. */
import type { Findings } from '../config/findings.ts'
import { labelOf } from '../config/source-file.ts'
import { type StoreContents, StoreProblem } from './store-contents.ts'
import { IS_URL, locate, NO_FILE, type WatchedFiles } from './watched-files.ts'

export interface StoreSetting {
  /** As given: within the security folder, or absolute. */
  readonly fileName: string
  /** '' for what its first bytes say. */
  readonly type: string
  readonly password: string
  /** '' for that of the store. */
  readonly keyPassword: string
  /** The key to take of several, and how that setting is called; left out for the first by name. */
  readonly alias?: { readonly wanted: string; readonly name: string }
  /** How these are called where they were set. */
  readonly names: Readonly<Record<'fileName' | 'type' | 'password' | 'keyPassword', string>>
}

/** A store that was read, and what to call it. */
export interface OpenStore {
  readonly setting: StoreSetting
  readonly label: string
  readonly contents: StoreContents
}

const SECURITY_FOLDER = 'security'
/** The same on the reference platform, from its root. */
const DOCUMENTED_FOLDER = 'repository/resources/security/'
const JKS_MAGIC = 0xfeed_feed
const JCEKS_MAGIC = 0xcece_cece
const SEQUENCE = 0x30

/** The same in this form for a section's keys and for elements of a profile. */
export function storeNames(prefix: string, keys: readonly [string, string, string, string]): StoreSetting['names'] {
  const [fileName, type, password, keyPassword] = keys.map(key => `${prefix}${key}`)
  return { fileName: fileName!, type: type!, password: password!, keyPassword: keyPassword! }
}

/** Undefined with a fault when it cannot be read. `home`: folder that the security folder is in. */
export async function openStore(
  setting: StoreSetting,
  home: string,
  files: WatchedFiles,
  findings: Findings,
): Promise<OpenStore | undefined> {
  const { names } = setting
  if (IS_URL.test(setting.fileName)) return findings.fault('', names.fileName, NO_FILE, storeRemedy(names))
  const path = locate(home, SECURITY_FOLDER, DOCUMENTED_FOLDER, setting.fileName)
  const label = labelOf(path)
  const { bytes, why } = files.read(path)
  if (bytes === undefined) return findings.fault(label, names.fileName, `cannot be read: ${why}`, storeRemedy(names))
  const found = typeOf(bytes)
  const type = setting.type === '' ? found : setting.type.toUpperCase()
  if (found === 'JCEKS') return findings.fault(label, names.fileName, 'is a JCEKS store', convertJceks(label))
  if (found !== type || found === '') {
    if (found === '') return findings.fault(label, names.fileName, 'is no store of a known type', storeRemedy(names))
    return findings.fault(label, names.type, `expected a ${type} store, and it is ${found}`, `set ${names.type}`)
  }
  try {
    const contents = await read(type, bytes, setting)
    warnOfOldAge(label, names.fileName, contents, findings)
    return { setting, label, contents }
  } catch (error) {
    // Whatever the library makes of bytes that nobody foresaw, the store is what is wrong.
    const problem = error instanceof StoreProblem ? error : new StoreProblem('unreadable', 'its parts make no sense')
    return reportProblem(problem, label, type, setting, findings)
  }
}

function storeRemedy(names: StoreSetting['names']): string {
  return `put it there, or set ${names.fileName}; it is looked for in the folder ${SECURITY_FOLDER} of the home folder`
}

/** By the first bytes. '' for what is none of them. */
function typeOf(bytes: Buffer): string {
  const magic = bytes.length < 4 ? 0 : bytes.readUInt32BE()
  if (magic === JKS_MAGIC) return 'JKS'
  if (magic === JCEKS_MAGIC) return 'JCEKS'
  if (bytes[0] === SEQUENCE) return 'PKCS12'
  return bytes.includes('-----BEGIN ') ? 'PEM' : ''
}

/** What reads a type is loaded with the first store of it. */
async function read(type: string, bytes: Buffer, { password, keyPassword }: StoreSetting): Promise<StoreContents> {
  if (type === 'JKS') return (await import('./jks.ts')).readJks(bytes, password, keyPassword)
  if (type === 'PKCS12') return (await import('./pkcs12.ts')).readPkcs12(bytes, password, keyPassword)
  return (await import('./pem-store.ts')).readPem(bytes, keyPassword === '' ? password : keyPassword)
}

function warnOfOldAge(label: string, key: string, { outdated }: StoreContents, findings: Findings): void {
  if (outdated.length === 0) return
  findings.warn(label, key, `is protected by ${outdated.join(' and ')}, which no longer protects it`, convert(label))
}

function reportProblem(
  { kind, message }: StoreProblem,
  label: string,
  type: string,
  { names, password }: StoreSetting,
  findings: Findings,
): undefined {
  if (kind === 'store password' && password === '') {
    return findings.fault(label, names.fileName, 'needs a password, and none is set', `set ${names.password}`)
  }
  if (kind === 'store password') {
    return findings.fault(label, names.password, `wrong password for ${label}`, `set ${names.password}`)
  }
  if (kind === 'key password') {
    const expected = `wrong password for the key in ${label}`
    return findings.fault(label, names.keyPassword, expected, `set ${names.keyPassword}`)
  }
  if (kind === 'outdated') {
    return findings.fault(label, names.fileName, `is too old to be read: ${message}`, convert(label))
  }
  return findings.fault(label, names.fileName, `is no valid ${type} store: ${message}`, storeRemedy(names))
}

function convert(label: string): string {
  return `convert it: openssl pkcs12 -legacy -in ${label} -nodes | openssl pkcs12 -export -out new.p12`
}

function convertJceks(label: string): string {
  const from = `-srckeystore ${label} -srcstoretype JCEKS`
  return `convert it: keytool -importkeystore ${from} -destkeystore new.p12 -deststoretype PKCS12`
}
