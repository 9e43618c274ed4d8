/** Opens a configured key store or trust store: finds its file, detects its type, decrypts it, reports its errors. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { Diagnostics } from '../config/diagnostics.ts'
import { labelOf } from '../config/source-file.ts'
import { parseCertificate, type StoreContents, StoreError } from './store-contents.ts'
import { IS_URL, resolveDocumented, URL_GIVEN, type WatchedFiles } from './watched-files.ts'

export interface StoreSettings {
  /** As configured: relative to the security folder, or absolute. */
  readonly fileName: string
  /** '': detected by the first bytes. */
  readonly type: string
  readonly password: string
  /** '': the password of the store. */
  readonly keyPassword: string
  /** Alias of the key to use, and the path of its setting. Absent: the first key by alias. */
  readonly alias?: { readonly wanted: string; readonly name: string }
  /** Paths of the settings, for diagnostics. */
  readonly names: Readonly<Record<'fileName' | 'type' | 'password' | 'keyPassword', string>>
}

export interface OpenStore {
  readonly settings: StoreSettings
  /** Path of the file, for diagnostics. */
  readonly label: string
  readonly contents: StoreContents
}

const SECURITY_FOLDER = 'security'
/** The security folder of the reference platform, from its root. */
const DOCUMENTED_FOLDER = 'repository/resources/security/'
const JKS_MAGIC = 0xfeed_feed
const JCEKS_MAGIC = 0xcece_cece
const DER_SEQUENCE = 0x30

/** `keys`: file name, type, password, key password, as a section or a profile spells them. */
export function storeNames(prefix: string, keys: readonly [string, string, string, string]): StoreSettings['names'] {
  const [fileName, type, password, keyPassword] = keys.map(key => `${prefix}${key}`)
  return { fileName: fileName!, type: type!, password: password!, keyPassword: keyPassword! }
}

/** Returns undefined, with an error, if the store cannot be read. `home`: the folder of the security folder. */
export async function openStore(
  settings: StoreSettings,
  home: string,
  files: WatchedFiles,
  diagnostics: Diagnostics,
): Promise<OpenStore | undefined> {
  const { names } = settings
  if (IS_URL.test(settings.fileName)) return diagnostics.error('', names.fileName, URL_GIVEN, fileHint(names))
  const path = resolveDocumented(home, SECURITY_FOLDER, DOCUMENTED_FOLDER, settings.fileName)
  const label = labelOf(path)
  const { bytes, error } = files.read(path)
  if (bytes === undefined) return diagnostics.error(label, names.fileName, `cannot be read: ${error}`, fileHint(names))
  const found = detectType(bytes)
  const type = settings.type === '' ? found : settings.type.toUpperCase()
  if (found === 'JCEKS') {
    return diagnostics.error(label, names.fileName, 'is a JCEKS store, which is not supported', convertJceks(label))
  }
  if (found === '') {
    return diagnostics.error(label, names.fileName, 'is not a key store of a known type', fileHint(names))
  }
  if (found !== type) {
    return diagnostics.error(label, names.type, `expected a ${type} store, found a ${found} store`, `set ${names.type}`)
  }
  try {
    const contents = await readStore(type, bytes, settings)
    warnOfWeakAlgorithms(label, names.fileName, contents, diagnostics)
    return { settings, label, contents }
  } catch (failure) {
    // Any other error of the library means that the store is malformed.
    const cause = failure instanceof StoreError ? failure : new StoreError('malformed', 'unexpected structure')
    return reportError(cause, label, type, settings, diagnostics)
  }
}

function fileHint(names: StoreSettings['names']): string {
  return `put the file into the folder ${SECURITY_FOLDER} of the home, or set ${names.fileName}`
}

/** Returns '' for an unknown type. */
function detectType(bytes: Buffer): string {
  const magic = bytes.length < 4 ? 0 : bytes.readUInt32BE()
  if (magic === JKS_MAGIC) return 'JKS'
  if (magic === JCEKS_MAGIC) return 'JCEKS'
  if (bytes[0] === DER_SEQUENCE) return 'PKCS12'
  return bytes.includes('-----BEGIN ') ? 'PEM' : ''
}

/** The reader of a type is loaded with the first store of that type. */
async function readStore(
  type: string,
  bytes: Buffer,
  { password, keyPassword }: StoreSettings,
): Promise<StoreContents> {
  if (type === 'JKS') return (await import('./jks.ts')).readJks(bytes, password, keyPassword)
  if (type === 'PKCS12') return (await import('./pkcs12.ts')).readPkcs12(bytes, password, keyPassword)
  return readPem(bytes, keyPassword === '' ? password : keyPassword)
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
const PEM_KEY = /-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----[\s\S]+?-----END \1-----/g

/** Reads certificates and keys in any order. Throws a StoreError. */
function readPem(bytes: Buffer, keyPassword: string): StoreContents {
  const text = bytes.toString('latin1')
  const certificates = text.match(PEM_CERTIFICATE) ?? []
  const keys = text.match(PEM_KEY) ?? []
  if (certificates.length + keys.length === 0) throw new StoreError('malformed', 'no key and no certificate')
  return {
    keys: keys.map(pem => ({ alias: '', key: readPemKey(pem, keyPassword) })),
    certificates: certificates.map(pem => ({ alias: '', certificate: parseCertificate(pem), isTrusted: true })),
    weakAlgorithms: [],
  }
}

function readPemKey(pem: string, passphrase: string): KeyObject {
  const isEncrypted = pem.includes('ENCRYPTED')
  try {
    return createPrivateKey(isEncrypted ? { key: pem, passphrase } : pem)
  } catch {
    throw new StoreError(isEncrypted ? 'key password' : 'malformed', 'a key cannot be read')
  }
}

function warnOfWeakAlgorithms(
  label: string,
  key: string,
  { weakAlgorithms }: StoreContents,
  diagnostics: Diagnostics,
): void {
  if (weakAlgorithms.length === 0) return
  diagnostics.warn(label, key, `is protected by ${weakAlgorithms.join(' and ')}, which is insecure`, convert(label))
}

function reportError(
  { kind, message }: StoreError,
  label: string,
  type: string,
  { names, password }: StoreSettings,
  diagnostics: Diagnostics,
): undefined {
  if (kind === 'store password' && password === '') {
    return diagnostics.error(label, names.fileName, 'needs a password, and none is set', `set ${names.password}`)
  }
  if (kind === 'store password') {
    return diagnostics.error(label, names.password, `wrong password for ${label}`, `set ${names.password}`)
  }
  if (kind === 'key password') {
    const expected = `wrong password for the key in ${label}`
    return diagnostics.error(label, names.keyPassword, expected, `set ${names.keyPassword}`)
  }
  if (kind === 'unsupported') {
    return diagnostics.error(label, names.fileName, `uses an unsupported algorithm: ${message}`, convert(label))
  }
  return diagnostics.error(label, names.fileName, `is not a valid ${type} store: ${message}`, fileHint(names))
}

function convert(label: string): string {
  return `convert it: openssl pkcs12 -legacy -in ${label} -nodes | openssl pkcs12 -export -out new.p12`
}

function convertJceks(label: string): string {
  const from = `-srckeystore ${label} -srcstoretype JCEKS`
  return `convert it: keytool -importkeystore ${from} -destkeystore new.p12 -deststoretype PKCS12`
}
