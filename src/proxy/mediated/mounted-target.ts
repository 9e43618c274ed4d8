/** An API whose implementation runs in the worker pool, as a target: in place of endpoints. */
import { KIND } from '../../http1/field-kinds.ts'
import { tracer } from '../../protocol/tracer.ts'
import type { Target } from '../exchange/contract.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { MountedExchange } from './mounted-exchange.ts'
import type { MountedServices } from './mounted-calls.ts'
import { requestData } from './mounted-request.ts'

export class MountedTarget implements Target {
  readonly name: string
  /** Identity of the API (`apiIdentity`). */
  readonly #api: string
  readonly #services: MountedServices

  /** `module`: as the project names it. */
  constructor(api: string, module: string, services: MountedServices) {
    this.name = module
    this.#api = api
    this.#services = services
  }

  send(exchange: Exchange): void {
    tracer?.note(exchange, 'mounted', this.name)
    const request = requestData(exchange)
    exchange.backend = this.name
    const expects = exchange.minorVersion === 1 && exchange.head!.has(KIND.EXPECT)
    const mounted = new MountedExchange(exchange, { api: this.#api, request, expects }, this.#services)
    exchange.target = mounted
    mounted.begin()
  }
}
