/**
 * The certificate of all proxies (ECDSA on P-256, new for each run) and the TLS parameters of all clients: TLS 1.3 with
 * one cipher suite and one key exchange group, so that every proxy does the same work whatever it prefers.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { TcpNetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { findExecutable } from './program.ts'

export const SERVER_NAME = 'gateway.example.com'
export const CIPHER_SUITE = 'TLS_AES_256_GCM_SHA384'
export const KEY_EXCHANGE_GROUP = 'X25519'

export interface Certificate {
  readonly chainFile: string
  readonly keyFile: string
  /** Chain and key in one file, the format of HAProxy. */
  readonly bundleFile: string
  /** Environment variables that restrict programs with OpenSSL to the suite and the group above. */
  readonly environment: Readonly<Record<string, string>>
}

const OPENSSL_CLIENT_CONFIGURATION = `openssl_conf = init
[init]
ssl_conf = ssl
[ssl]
system_default = client
[client]
MinProtocol = TLSv1.3
Ciphersuites = ${CIPHER_SUITE}
Groups = ${KEY_EXCHANGE_GROUP}
`

/** Undefined if the openssl command is missing. */
export function createCertificate(folder: string): Certificate | undefined {
  const openssl = findExecutable('openssl')
  if (openssl === undefined) return undefined
  mkdirSync(folder, { recursive: true })
  const chainFile = `${folder}/chain.pem`
  const keyFile = `${folder}/key.pem`
  const bundleFile = `${folder}/bundle.pem`
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile]
  const names = ['-subj', `/CN=${SERVER_NAME}`, '-addext', `subjectAltName=DNS:${SERVER_NAME},IP:127.0.0.1`]
  execFileSync(openssl, ['req', '-x509', ...key, '-out', chainFile, '-days', '30', ...names], { stdio: 'ignore' })
  writeFileSync(bundleFile, readFileSync(chainFile, 'utf8') + readFileSync(keyFile, 'utf8'))
  writeFileSync(`${folder}/client.cnf`, OPENSSL_CLIENT_CONFIGURATION)
  return { chainFile, keyFile, bundleFile, environment: { OPENSSL_CONF: `${folder}/client.cnf` } }
}

/** Options of every TLS client of the bench; it accepts only the given certificate. */
function tlsClientOptions(chainFile: string): ConnectionOptions {
  return {
    ca: readFileSync(chainFile),
    servername: SERVER_NAME,
    minVersion: 'TLSv1.3',
    ciphers: CIPHER_SUITE,
    ecdhCurve: KEY_EXCHANGE_GROUP,
  }
}

type ConnectTarget = Pick<TcpNetConnectOpts, 'port' | 'onread'>

export function connectTls(options: ConnectTarget, chainFile: string, connected: () => void): TLSSocket {
  return connect({ host: '127.0.0.1', ...options, ...tlsClientOptions(chainFile) }, connected)
}
