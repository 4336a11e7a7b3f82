import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { tinyFileSystem } from './docker.ts';
import { tarOf } from './tar.ts';

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const CONFIG = 'application/vnd.docker.container.image.v1+json';
const LAYER = 'application/vnd.docker.image.rootfs.diff.tar.gzip';
const BALLAST_BYTES = 400_000;
const TICK_MS = 50;

/** How the image's last layer is sent. */
export type Delivery =
  | { readonly kind: 'whole' }
  /** In equal pieces, one every 50 ms, so that it takes about `ms`. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** The first half, then nothing until `resume`. */
  | { readonly kind: 'hold' }
  /** The first half, then the end of the connection; asked for again, it is refused for good. */
  | { readonly kind: 'cut' }
  /** As long as it should be, with other bytes. */
  | { readonly kind: 'corrupt' };

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

interface Blob {
  readonly digest: string;
  readonly bytes: Buffer;
}

/**
 * A container registry (API v2) on loopback, over plain HTTP as engines allow for such addresses. It serves one image that
 * does as the one of `buildTinyImage`; random ballast in a last layer makes it new to the engine. Whoever comes with wrong
 * credentials is told them: registries may be that careless.
 */
export class Registry implements AsyncDisposable {
  /** `METHOD path` of every request that named the image, in order. */
  readonly requests: string[] = [];
  delivery: Delivery = { kind: 'whole' };
  /** Resolves when half of a layer is out. */
  readonly halfway: Promise<void>;
  readonly #isHalfway: () => void;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #credentials: Credentials | null;
  readonly #manifest: Blob;
  readonly #config: Blob;
  readonly #base: Blob;
  readonly #layer: Blob;
  readonly #held = new Set<() => void>();
  #isCut = false;

  private constructor(credentials: Credentials | null, base: Buffer) {
    ({ promise: this.halfway, resolve: this.#isHalfway } = Promise.withResolvers<void>());
    this.#credentials = credentials;
    const ballast = tarOf([{ path: 'ballast', content: randomBytes(BALLAST_BYTES) }]);
    this.#base = blobOf(gzipSync(base));
    this.#layer = blobOf(gzipSync(ballast));
    this.#config = blobOf({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Entrypoint: ['/entry'], Env: ['PATH=/bin'] },
      rootfs: { type: 'layers', diff_ids: [digestOf(base), digestOf(ballast)] },
      history: [{ created_by: 'base' }, { created_by: 'ballast' }],
    });
    this.#manifest = blobOf({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: { mediaType: CONFIG, size: this.#config.bytes.length, digest: this.#config.digest },
      layers: [this.#base, this.#layer].map(({ bytes, digest }) => ({ mediaType: LAYER, size: bytes.length, digest })),
    });
    this.#server = createServer((incoming, response) => this.#answer(incoming, response));
    // An engine tries TLS first.
    this.#server.on('clientError', (_, socket) => socket.destroy());
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  /** With credentials, nothing is served without them. */
  static async open(credentials: Credentials | null = null): Promise<Registry> {
    const registry = new Registry(credentials, await tinyFileSystem());
    await new Promise<void>((resolve) => registry.#server.listen(0, '127.0.0.1', resolve));
    return registry;
  }

  /** By which an engine pulls it. */
  get image(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}/tiny:1`;
  }

  /** How many requests matched so far. */
  count(match: RegExp): number {
    return this.requests.filter((line) => match.test(line)).length;
  }

  /** How often the layer was asked for. */
  get layerRequests(): number {
    return this.requests.filter((line) => line === `GET /v2/tiny/blobs/${this.#layer.digest}`).length;
  }

  /** Sends the rest of what is held. */
  resume(): void {
    for (const rest of this.#held) rest();
    this.#held.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #answer(incoming: IncomingMessage, response: ServerResponse): void {
    const path = incoming.url ?? '';
    if (path !== '/v2/') this.requests.push(`${incoming.method} ${path}`);
    const told = Buffer.from(incoming.headers.authorization?.replace('Basic ', '') ?? '', 'base64').toString();
    if (this.#credentials !== null && told !== `${this.#credentials.username}:${this.#credentials.password}`) {
      response.setHeader('www-authenticate', 'Basic realm="registry"');
      refuse(response, 401, 'UNAUTHORIZED', `no entry with "${told}"`);
    } else if (path === '/v2/') send(response, incoming, 'application/json', Buffer.from('{}'));
    else if (path === '/v2/tiny/manifests/1' || path === `/v2/tiny/manifests/${this.#manifest.digest}`) {
      response.setHeader('docker-content-digest', this.#manifest.digest);
      send(response, incoming, MANIFEST, this.#manifest.bytes);
    } else if (path.endsWith(this.#config.digest)) send(response, incoming, CONFIG, this.#config.bytes);
    else if (path.endsWith(this.#base.digest)) send(response, incoming, LAYER, this.#base.bytes);
    else if (path.endsWith(this.#layer.digest)) void this.#deliver(incoming, response);
    else refuse(response, 404, path.includes('/manifests/') ? 'MANIFEST_UNKNOWN' : 'BLOB_UNKNOWN', 'not here');
  }

  async #deliver(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { bytes } = this.#layer;
    const how = this.delivery;
    const half = bytes.subarray(0, bytes.length / 2);
    if (how.kind === 'whole') return send(response, incoming, LAYER, bytes);
    if (how.kind === 'corrupt') return send(response, incoming, LAYER, Buffer.alloc(bytes.length, 'x'));
    if (this.#isCut) return refuse(response, 403, 'DENIED', 'this registry has had enough');
    response.writeHead(200, { 'content-type': LAYER, 'content-length': bytes.length });
    if (how.kind === 'slow') {
      const step = Math.ceil((bytes.length * TICK_MS) / how.ms);
      for (let at = 0; at < bytes.length && !response.destroyed; at += step) {
        response.write(bytes.subarray(at, at + step));
        if (at >= half.length) this.#isHalfway();
        await new Promise((resolve) => setTimeout(resolve, TICK_MS));
      }
      response.end();
      return;
    }
    response.write(half, () => {
      if (how.kind === 'cut') {
        this.#isCut = true;
        response.destroy();
      } else this.#held.add(() => response.end(bytes.subarray(half.length)));
      this.#isHalfway();
    });
  }
}

function send(response: ServerResponse, incoming: IncomingMessage, type: string, bytes: Buffer): void {
  response.writeHead(200, { 'content-type': type, 'content-length': bytes.length });
  response.end(incoming.method === 'HEAD' ? undefined : bytes);
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ errors: [{ code, message }] }));
}

function blobOf(content: Buffer | object): Blob {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
  return { bytes, digest: digestOf(bytes) };
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
