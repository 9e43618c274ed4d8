/** A client of the key manager of a running node: with its certificate, and as the administrator of its data folder. */
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import type { Home } from './program.ts'

interface RegisteredClient {
  readonly consumerKey: string
  /** Value of the Authorization field. */
  readonly authorization: string
}

export class KeyManagerClient {
  /** Certificate of the management listener, PEM. */
  readonly certificate: string
  readonly password: string
  readonly #port: number

  /** Reads certificate and password from the data folder, so the node must be ready. */
  constructor(home: Home, port: number) {
    const kept = readFileSync(join(home.data, 'listener.pem'), 'latin1')
    this.certificate = kept.slice(kept.indexOf('-----BEGIN CERTIFICATE-----'))
    this.password = readFileSync(join(home.data, 'admin-password'), 'utf8').trim()
    this.#port = port
  }

  async register(tokenType: 'JWT' | 'OPAQUE'): Promise<RegisteredClient> {
    const asked = { clientName: tokenType, grantType: 'client_credentials', owner: 'admin', tokenType }
    const admin = basicOf('admin', this.password)
    const { clientId = '', clientSecret = '' } = await this.post('/client-registration/v0.17/register', admin, asked)
    return { consumerKey: clientId, authorization: basicOf(clientId, clientSecret) }
  }

  async tokenOf({ authorization }: RegisteredClient): Promise<string> {
    return (await this.post('/oauth2/token', authorization, 'grant_type=client_credentials')).access_token!
  }

  async revoke(token: string, { authorization }: RegisteredClient): Promise<void> {
    await this.post('/oauth2/revoke', authorization, `token=${token}`)
  }

  /** `body`: a form as text, or an object, sent as JSON. Rejects with status and text of a response from 300 on. */
  post(path: string, authorization: string, body: object | string): Promise<Record<string, string>> {
    const isForm = typeof body === 'string'
    const headers = { authorization, 'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json' }
    const address = { host: 'localhost', port: this.#port, path, ca: this.certificate, agent: false }
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, string>>()
    const asked = request({ ...address, method: 'POST', headers }, async answer => {
      const text = (await answer.setEncoding('utf8').toArray()).join('')
      if (answer.statusCode! < 300) resolve(text === '' ? {} : JSON.parse(text))
      else reject(new Error(`${answer.statusCode}: ${text}`))
    })
    asked.on('error', reject)
    asked.end(isForm ? body : JSON.stringify(body))
    return promise
  }
}

export function basicOf(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`
}
