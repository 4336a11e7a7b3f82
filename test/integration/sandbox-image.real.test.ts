import { randomBytes } from 'node:crypto';
import Docker from 'dockerode';
import { afterEach, describe, expect, test } from 'vitest';

/** What the broker needs of a sandbox image, and what people get of this one, under the tightest security settings. */
const IMAGE = 'sandbox-broker/sandbox:local';
const docker = new Docker();
const started: Docker.Container[] = [];

afterEach(async () => {
  for (const container of started.splice(0)) await container.remove({ force: true, v: true });
});

interface Sandbox {
  readonly container: Docker.Container;
  readonly url: string;
  /** From the engine's answer to start until the first 200, in milliseconds. */
  readonly readyAfterMs: number;
}

async function start(): Promise<Sandbox> {
  const container = await docker.createContainer({
    name: `sandbox-image-test-${randomBytes(6).toString('hex')}`,
    Image: IMAGE,
    HostConfig: {
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
      Tmpfs: { '/tmp': 'rw,mode=1777' },
      PidsLimit: 64,
      Memory: 256 * 1024 * 1024,
      PortBindings: { '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] },
    },
  });
  started.push(container);
  await container.start();
  const from = performance.now();
  const { NetworkSettings: network } = await container.inspect();
  const url = `http://127.0.0.1:${network.Ports['8080/tcp']?.[0]?.HostPort}`;
  while (performance.now() - from < 10_000) {
    const answer = await fetch(`${url}/v1/sandbox`).catch(() => null);
    await answer?.arrayBuffer();
    if (answer?.status === 200) return { container, url, readyAfterMs: performance.now() - from };
  }
  throw new Error('the sandbox did not become ready');
}

interface Result {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly truncated: boolean;
}

async function run(url: string, command: string, timeoutMs?: number): Promise<Result> {
  const response = await fetch(`${url}/v1/shell/exec`, {
    method: 'POST',
    body: JSON.stringify(timeoutMs === undefined ? { command } : { command, timeoutMs }),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Result;
}

describe('the sandbox image', () => {
  test('is small', async () => {
    const { Size: bytes } = await docker.getImage(IMAGE).inspect();
    expect(bytes).toBeLessThan(150_000_000);
  });

  test('is ready soon after its start, as a user without rights', async () => {
    // The best of a few: a busy machine says nothing about the image.
    const starts = [await start(), await start(), await start(), await start()];
    expect(Math.min(...starts.map(({ readyAfterMs }) => readyAfterMs))).toBeLessThan(1_000);
    const { url } = starts[0]!;
    const { stdout } = await run(url, 'id -u; grep -E "^(CapEff|CapPrm|NoNewPrivs)" /proc/self/status');
    expect(stdout.split(/\s+/)).toEqual([
      '1000',
      'CapPrm:',
      '0'.repeat(16),
      'CapEff:',
      '0'.repeat(16),
      'NoNewPrivs:',
      '1',
      '',
    ]);
  });

  test('runs a command and tells its exit code, output and errors apart', async () => {
    const { url } = await start();
    const result = await run(url, 'echo out; echo err >&2; exit 3');
    expect(result).toEqual({ exitCode: 3, stdout: 'out\n', stderr: 'err\n', timedOut: false, truncated: false });
    expect((await run(url, 'python3 -c "import json, hashlib; print(json.dumps([1]))"')).stdout).toBe('[1]\n');
  });

  test('caps output, and answers although a process in the background holds it', async () => {
    const { url } = await start();
    const result = await run(url, 'sleep 60 & yes | head -c 5000000');
    expect(result.stdout.length).toBe(1 << 20);
    expect(result).toMatchObject({ exitCode: 0, truncated: true, timedOut: false });
  });

  test('kills the whole process group at the timeout', async () => {
    const { url } = await start();
    expect(await run(url, 'sleep 61 | sleep 62', 200)).toMatchObject({ exitCode: 124, timedOut: true });
    expect((await run(url, 'ps')).stdout).not.toMatch(/sleep 6/);
  });

  test('writes and reads a file byte for byte, and makes its folders', async () => {
    const { url } = await start();
    const bytes = new Uint8Array(randomBytes(300_000));
    const file = `${url}/v1/files?path=${encodeURIComponent('/tmp/a b/ü.bin')}`;
    const written = await fetch(file, { method: 'PUT', body: bytes });
    expect(await written.json()).toEqual({ path: '/tmp/a b/ü.bin', bytes: bytes.length });
    const read = await fetch(file);
    expect(Buffer.from(await read.arrayBuffer()).equals(bytes)).toBe(true);
    expect((await run(url, 'ls "/tmp/a b"')).stdout).toBe('ü.bin\n');
  });

  test('refuses what it cannot do, and goes on', async () => {
    const { url } = await start();
    const status = async (path: string, init?: RequestInit): Promise<number> => {
      const response = await fetch(`${url}${path}`, init);
      expect(await response.json()).toEqual({ error: expect.any(String) });
      return response.status;
    };
    expect(await status('/nothing')).toBe(404);
    expect(await status('/v1/files?path=/tmp/none')).toBe(404);
    expect(await status('/v1/files')).toBe(400);
    expect(await status('/v1/files?path=/etc/passwd', { method: 'PUT', body: 'x' })).toBe(403);
    expect(await status('/v1/shell/exec', { method: 'POST', body: '{' })).toBe(400);
    expect(await status('/v1/shell/exec', { method: 'POST', body: '{"command": 1}' })).toBe(400);
    expect(await status('/v1/shell/exec', { method: 'POST', body: '{"command": "true", "timeoutMs": -1}' })).toBe(400);
    expect((await run(url, 'echo still here')).stdout).toBe('still here\n');
  });

  test('ends at once on SIGTERM, also with a command running, and with code 0', async () => {
    const { container, url } = await start();
    const busy = run(url, 'sleep 63').catch(() => null);
    // `ps` shows the command from within once it runs.
    await expect.poll(async () => (await run(url, 'ps')).stdout, { timeout: 10_000 }).toMatch(/sleep 63/);
    await container.stop({ t: 10 });
    expect((await container.inspect()).State.ExitCode, 'not killed after ten seconds').toBe(0);
    await busy;
  });
});
