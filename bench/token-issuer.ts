/**
 * Who has issued the tokens of the bench: one RSA key, kept for the run, its key set on a port of this machine, and as
 * many RS256 tokens (RFC 7519) as are asked for. Everybody who checks tokens checks the same ones.
 */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { AddressInfo } from 'node:net'

export const ISSUER = 'https://issuer.bench.example'
export const CLIENT = 'bench-client'
const KEY_ID = 'bench-1'
const LIFETIME_S = 86_400

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

class TokenIssuer {
  readonly #privateKey: KeyObject
  readonly #publicKey: KeyObject
  readonly #tokens: string[] = []
  #keySetUrl: Promise<string> | undefined

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    this.#privateKey = privateKey
    this.#publicKey = publicKey
  }

  get publicPem(): string {
    return this.#publicKey.export({ type: 'spki', format: 'pem' }).toString()
  }

  /** The same ones each time; further ones are made as they are needed. */
  tokens(count: number): readonly string[] {
    while (this.#tokens.length < count) this.#tokens.push(this.#issue(this.#tokens.length))
    return this.#tokens.slice(0, count)
  }

  /** Where the key set is served for as long as the bench runs. */
  keySetUrl(): Promise<string> {
    this.#keySetUrl ??= this.#serve()
    return this.#keySetUrl
  }

  #issue(number: number): string {
    const now = Math.floor(Date.now() / 1000)
    const header = { alg: 'RS256', typ: 'at+jwt', kid: KEY_ID }
    const who = { iss: ISSUER, sub: 'bench', azp: CLIENT, aut: 'APPLICATION', scope: 'default' }
    const claims = { ...who, iat: now, nbf: now, exp: now + LIFETIME_S, jti: `bench-${number}` }
    const signed = `${encoded(header)}.${encoded(claims)}`
    return `${signed}.${sign('sha256', Buffer.from(signed), this.#privateKey).toString('base64url')}`
  }

  async #serve(): Promise<string> {
    const jwk = { ...this.#publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'RS256', use: 'sig' }
    const keySet = JSON.stringify({ keys: [jwk] })
    const server = createServer((_, response) => {
      response.setHeader('Content-Type', 'application/json').end(keySet)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    server.unref()
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`
  }
}

let issuer: TokenIssuer | undefined

export function tokenIssuer(): TokenIssuer {
  issuer ??= new TokenIssuer()
  return issuer
}
